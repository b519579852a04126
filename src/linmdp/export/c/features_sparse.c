/* linmdp_features.c: see linmdp_features.h. Written by `linmdp export`. */
#include "linmdp_features.h"

#include <stddef.h>

$tables
void linmdp_phi(const linmdp_seen *seen, unsigned action, linmdp_real phi[LINMDP_D])
{
    const size_t row = (size_t)*seen * LINMDP_A + action;
    for (size_t i = 0; i < LINMDP_D; i++)
        phi[i] = 0;
    for (size_t at = start[row]; at < start[row + 1]; at++)
        phi[place[at]] = $entry;
}
