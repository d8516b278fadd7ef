/* Work whose result can be verified: steps of a generator forwards, and its inverse back.
 * Work.java has the same numbers. */
#ifndef DWELL_CHAOS_WORK_H
#define DWELL_CHAOS_WORK_H
#include <stdint.h>

#define WORK_FACTOR 6364136223846793005ULL
#define WORK_ADD 1442695040888963407ULL

static inline uint64_t work_there(uint64_t x, int steps)
{
    for (int i = 0; i < steps; i++) {
        x = x * WORK_FACTOR + WORK_ADD;
        /* Opaque, or the compiler would fold the loop. */
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}
#endif
