/* linmdp_features.h: a state of this task is a whole number below LINMDP_S. */
#ifndef LINMDP_FEATURES_H
#define LINMDP_FEATURES_H

#include "linmdp_config.h"

typedef uint32_t linmdp_state;
typedef uint32_t linmdp_kept; /* a state as it lies in a table */
typedef uint32_t linmdp_slot; /* a state that the caller holds, and how it is passed to a call */
#define LINMDP_STATE(slot) (slot)

#define LINMDP_FINITE 1
#define LINMDP_NO_STATE UINT32_MAX /* what linmdp_is_state refuses */

static inline int linmdp_is_state(linmdp_state state) { return state < LINMDP_S; }
static inline linmdp_state linmdp_recall(const linmdp_kept *kept) { return *kept; }

/* The state as coordinates. */
static inline void linmdp_coordinates(linmdp_state state, linmdp_number x[LINMDP_K]) { x[0] = (linmdp_number)state; }

#endif
