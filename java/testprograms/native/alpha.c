/* One of two libraries of the same size that are loaded at the same address in turn. */
#include "burn.h"

uint64_t alpha_burn(uint64_t steps)
{
    return burn_steps(steps);
}
