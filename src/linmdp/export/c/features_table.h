/* linmdp_features.h: phi(s, a) of finite states, from a table in read-only memory. */
#ifndef LINMDP_FEATURES_H
#define LINMDP_FEATURES_H

#include "linmdp_config.h"

typedef unsigned linmdp_state;        /* 0 .. LINMDP_S - 1 */
typedef linmdp_index_s linmdp_kept;   /* a state as it lies in memory */
typedef linmdp_state linmdp_seen;     /* a state, made ready for linmdp_phi */

typedef linmdp_state linmdp_slot; /* a state that the caller holds, and how it is passed to a call */
#define LINMDP_STATE(slot) (slot)

#define LINMDP_FINITE 1
#define LINMDP_NO_STATE ((linmdp_state)LINMDP_S) /* what linmdp_is_state refuses */

/* 1 if it is a state of this task */
static inline int linmdp_is_state(linmdp_state state) { return state < LINMDP_S; }

static inline linmdp_kept linmdp_keep(linmdp_state state) { return (linmdp_kept)state; }

static inline linmdp_state linmdp_recall(const linmdp_kept *kept) { return *kept; }

static inline void linmdp_look(linmdp_state state, linmdp_seen *seen) { *seen = state; }

/* phi(state, action) */
void linmdp_phi(const linmdp_seen *seen, unsigned action, linmdp_real phi[LINMDP_D]);

#endif
