/* Redis asks for the time by gettimeofday: this one is off by as many seconds as a file says. (libfaketime
   and Redis's allocator wait for each other for ever.) */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec right;
  if (clock_gettime(CLOCK_REALTIME, &right) != 0) return -1;
  char text[32] = {0};
  const char *path = getenv("SNOWMINT_REDIS_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file >= 0) {
    if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
    close(file);
  }
  now->tv_sec = right.tv_sec + atol(text);
  now->tv_usec = right.tv_nsec / 1000;
  return 0;
}
