/* What Debian's libstdc++.a takes from a glibc newer than 2.28. Hidden: each
   shared object has its own. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* "There may be threads": always right, at the cost of an atomic instruction. */
__attribute__((visibility("hidden"))) const char __libc_single_threaded = 0;

/* Behind std::random_device. */
__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value;
  size_t filled = 0;
  while (filled < sizeof value) {
    ssize_t count = getrandom((char *)&value + filled, sizeof value - filled, 0);
    if (count < 0)
      abort();
    filled += (size_t)count;
  }
  return value;
}
