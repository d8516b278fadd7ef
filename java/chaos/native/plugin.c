/* A library that is opened, run and closed again and again. */
#include "work.h"

__attribute__((noinline)) uint64_t plugin_inner(uint64_t x, int steps)
{
    return work_there(x, steps);
}

uint64_t plugin_run(uint64_t x, int steps)
{
    /* The xor keeps this from being a tail call, so that two frames are on the stack. */
    return plugin_inner(x, steps) ^ 0x5a;
}
