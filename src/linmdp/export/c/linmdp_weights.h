/* linmdp_weights.h: what a learner and a frozen policy share. */
#ifndef LINMDP_WEIGHTS_H
#define LINMDP_WEIGHTS_H

#include "linmdp_algebra.h"

/* What Q_h is made of, as of one planning: see linmdp_optimistic in linmdp_value.h. */
typedef struct {
    linmdp_wide w[LINMDP_D];
    linmdp_quick factor[LINMDP_PACKED]; /* the Cholesky factor of Lambda at that moment */
} linmdp_weights;

#endif
