// Writes a status into a program's record, as a module that was compiled with other options would.
#include "tuned.h"

namespace {

struct Record {
  tuned_status status;
  unsigned char next;
};

}  // namespace

extern "C" void write_status(void* record) {
  static_cast<Record*>(record)->status = TUNED_NULL_ARGUMENT;
  static_cast<Record*>(record)->next = 9;
}
extern "C" unsigned long size_of_status_in_cpp() { return sizeof(tuned_status); }
