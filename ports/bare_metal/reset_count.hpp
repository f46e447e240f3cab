// The number of resets, in memory that a reset leaves as it was.
#pragma once

// One more; right before the reset.
void count_reset();
