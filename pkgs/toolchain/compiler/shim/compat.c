/* What Debian's libstdc++.a and its headers take from a glibc newer than 2.28.
   Hidden: each shared object has its own. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

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

/* Behind std::condition_variable::wait_until on a steady clock: waits for as long on the
   clock that a condition has by default. A wait that ends early, as it does where that clock
   is set, looks like one that was woken for nothing. */
__attribute__((visibility("hidden"))) int pthread_cond_clockwait(pthread_cond_t *condition,
                                                                 pthread_mutex_t *mutex,
                                                                 clockid_t clock,
                                                                 const struct timespec *until) {
  const long second = 1000000000;
  struct timespec now, wall, moment;
  if (clock == CLOCK_REALTIME)
    return pthread_cond_timedwait(condition, mutex, until);
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &wall) != 0)
    return EINVAL;
  moment.tv_sec = wall.tv_sec + until->tv_sec - now.tv_sec;
  moment.tv_nsec = wall.tv_nsec + until->tv_nsec - now.tv_nsec;
  if (moment.tv_nsec < 0) {
    moment.tv_nsec += second;
    --moment.tv_sec;
  } else if (moment.tv_nsec >= second) {
    moment.tv_nsec -= second;
    ++moment.tv_sec;
  }
  int result = pthread_cond_timedwait(condition, mutex, &moment);
  if (result != ETIMEDOUT)
    return result;
  if (clock_gettime(clock, &now) != 0)
    return EINVAL;
  int passed = now.tv_sec > until->tv_sec ||
               (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
  return passed ? ETIMEDOUT : 0;
}
