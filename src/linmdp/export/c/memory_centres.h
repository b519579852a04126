/* linmdp_memory.h: all that LSVI-UCB keeps where next states are merged into centres. It does not grow. */
#ifndef LINMDP_MEMORY_H
#define LINMDP_MEMORY_H

#include <stdint.h>

#include "linmdp_clock.h"
#include "linmdp_core.h"

#if LINMDP_FINITE
typedef linmdp_kept linmdp_point;
#else
typedef linmdp_seen linmdp_point; /* its features: making them again for every distance would take too long */
#endif

/* A next state that was seen, and stands for those near it. */
typedef struct {
    linmdp_wide N[LINMDP_D]; /* sum of phi over its samples */
    linmdp_wide times;       /* and of their weights */
    linmdp_point point;
} linmdp_centre;

/* Those of one regression. */
typedef struct {
    linmdp_centre centre[LINMDP_PLACES];
#if LINMDP_MERGES
    linmdp_wide radius;         /* a next state within it of a centre is no centre */
    uint8_t stays[LINMDP_PLACES]; /* 0 while a centre is merged into others */
#endif
    uint16_t count;
} linmdp_store;

#define LINMDP_STORES (LINMDP_GROUPS > 1 ? LINMDP_GROUPS - 1 : 1) /* nothing follows the last step */

typedef struct {
    linmdp_core core;
    linmdp_store store[LINMDP_STORES];
    linmdp_clock clock;
} linmdp_learner;

#endif
