/* The arithmetic with which the test libraries burn CPU time: dependent steps of about 1.3 ns. */
#include <stdint.h>

static inline __attribute__((always_inline)) uint64_t burn_steps(uint64_t steps)
{
    uint64_t x = steps;
    while (steps-- > 0) {
        x = (x ^ steps) * UINT64_C(0x9E3779B97F4A7C15);
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}
