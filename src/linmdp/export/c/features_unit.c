/* linmdp_features.c: see linmdp_features.h. Written by `linmdp export`. */
#include "linmdp_features.h"

#include <stddef.h>

$tables
void linmdp_phi(const linmdp_seen *seen, unsigned action, linmdp_real phi[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        phi[i] = 0;
    phi[place[(size_t)*seen * LINMDP_A + action]] = $entry;
}
