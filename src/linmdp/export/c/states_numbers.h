/* linmdp_features.h: a state of this task is LINMDP_N numbers. */
#ifndef LINMDP_FEATURES_H
#define LINMDP_FEATURES_H

#include "linmdp_config.h"

typedef const linmdp_real *linmdp_state; /* LINMDP_N numbers; read during the call alone */

typedef struct { /* a state as it lies in a table */
    linmdp_real x[LINMDP_N];
} linmdp_kept;

typedef linmdp_kept linmdp_slot; /* a state that the caller holds, and how it is passed to a call */
#define LINMDP_STATE(slot) ((slot).x)

#define LINMDP_FINITE 0
#define LINMDP_NO_STATE ((linmdp_state)0) /* what linmdp_is_state refuses */

/* 1 if it is there, and finite in single precision */
static inline int linmdp_is_state(linmdp_state state)
{
    if (!state)
        return 0;
    for (unsigned i = 0; i < LINMDP_N; i++)
        if (!(state[i] >= (linmdp_real)-3e38 && state[i] <= (linmdp_real)3e38)) /* so written, it refuses what is no number */
            return 0;
    return 1;
}

static inline linmdp_state linmdp_recall(const linmdp_kept *kept) { return kept->x; }

/* The state as coordinates. */
static inline void linmdp_coordinates(linmdp_state state, linmdp_number x[LINMDP_K])
{
    for (unsigned i = 0; i < LINMDP_N; i++)
        x[i] = (linmdp_number)state[i];
}

#endif
