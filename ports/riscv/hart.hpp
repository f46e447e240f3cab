// What each hart has of its own.
#pragma once

// Traps and protected memory of the hart that calls.
void set_up_hart();
