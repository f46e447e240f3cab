#pragma once

extern "C" void printk(const char* format, ...);
