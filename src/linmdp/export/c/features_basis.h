/* linmdp_features.h: phi(s, a) of a state that is LINMDP_N numbers: psi(s) in the block of action a, zero elsewhere. */
#ifndef LINMDP_FEATURES_H
#define LINMDP_FEATURES_H

#include "linmdp_config.h"

typedef const linmdp_real *linmdp_state; /* LINMDP_N numbers; read during the call alone */

typedef struct { /* a state as it lies in memory */
    linmdp_real x[LINMDP_N];
} linmdp_kept;

typedef struct { /* a state, made ready for linmdp_phi */
    linmdp_wide psi[LINMDP_P];
} linmdp_seen;

typedef linmdp_kept linmdp_slot; /* a state that the caller holds, and how it is passed to a call */
#define LINMDP_STATE(slot) ((slot).x)

#define LINMDP_FINITE 0
#define LINMDP_NO_STATE ((linmdp_state)0) /* what linmdp_is_state refuses */

/* 1 if it is there, and finite */
int linmdp_is_state(linmdp_state state);

static inline linmdp_kept linmdp_keep(linmdp_state state)
{
    linmdp_kept kept;
    for (unsigned i = 0; i < LINMDP_N; i++)
        kept.x[i] = state[i];
    return kept;
}

static inline linmdp_state linmdp_recall(const linmdp_kept *kept) { return kept->x; }

/* psi(state) */
void linmdp_look(linmdp_state state, linmdp_seen *seen);

/* phi(state, action) */
void linmdp_phi(const linmdp_seen *seen, unsigned action, linmdp_real phi[LINMDP_D]);

#endif
