/* linmdp_memory.h: all that LSVI-UCB-Fold keeps. Its size does not depend on how long it learns. */
#ifndef LINMDP_MEMORY_H
#define LINMDP_MEMORY_H

#include <stdint.h>

#include "linmdp_features.h"
#include "linmdp_weights.h"

/* One transition (s, a, s'). */
typedef struct {
    linmdp_kept state, next;
    linmdp_index_a action;
    uint8_t alive; /* 0 where s' is terminal, so that nothing follows */
} linmdp_sample;

/* The regression of one step, over all data. */
typedef struct {
    linmdp_wide Lambda[LINMDP_PACKED]; /* lam I + sum phi phi' */
    linmdp_wide u[LINMDP_D];           /* sum phi r */
    linmdp_weights q;
} linmdp_step;

/* What stands for the samples that are no longer there: sum phi V(s') = c + J (w - w_ref) + what the probes say. */
typedef struct {
    linmdp_wide c[LINMDP_D], w_ref[LINMDP_D];
#if LINMDP_SLOPES
    linmdp_wide J[LINMDP_D][LINMDP_D]; /* sum phi psi', psi the slope of V(s') in w */
#endif
    linmdp_wide V_ref[LINMDP_M];       /* V at the probes when they were folded, */
    linmdp_best best_ref[LINMDP_M];    /* and the best action; -1 where V has no slope */
    linmdp_sample probe[LINMDP_M], buffer[LINMDP_M];
    uint32_t folded; /* samples folded so far */
    uint16_t probes;
} linmdp_past;

/* Room to work in, shared by all steps. */
typedef struct {
    linmdp_wide factor[LINMDP_PACKED]; /* of Lambda of the step ahead, */
    linmdp_wide matrix[LINMDP_PACKED]; /* and of lam I + sum phi phi' over the probes */
    linmdp_wide block[LINMDP_COLUMNS][LINMDP_D];
    linmdp_wide buffer_V[LINMDP_M], probe_V[LINMDP_M];
    linmdp_best buffer_best[LINMDP_M], probe_best[LINMDP_M];
} linmdp_scratch;

typedef struct {
    linmdp_step step[LINMDP_H];
    linmdp_past past[LINMDP_H > 1 ? LINMDP_H - 1 : 1]; /* nothing follows the last step */
    linmdp_scratch scratch;
    uint32_t seed, draws, tie_key; /* randomness is a hash of these: see linmdp_draws.h */
    uint32_t episodes, due;        /* episodes begun, and the one to plan in next */
    uint16_t count[LINMDP_H];      /* transitions in the buffer of each step */
    uint16_t next;                 /* the step to be observed next; LINMDP_H between episodes */
} linmdp_learner;

#endif
