// Runs the tests of a firmware image: failing checks as file:line, then `N passed, N failed`.
#include "check.hpp"

int main() {
  int passed = 0, failed = 0;
  for (const check::Test* test = check::Test::first; test != nullptr; test = test->next) {
    check::Test::failed = false;
    test->body();
    if (check::Test::failed) {
      ++failed;
      port::print("FAILED ", test->suite, '.', test->name, '\n');
    } else {
      ++passed;
    }
  }
  if (check::cases_left > 0) port::print(check::cases_left, " cases left to the host\n");
  port::print(passed, " passed, ", failed, " failed\n");
  return failed == 0 && passed > 0 ? 0 : 1;
}
