/* linmdp_memory.h: all that LSVI-UCB-Fixed keeps: the samples of one phase. */
#ifndef LINMDP_MEMORY_H
#define LINMDP_MEMORY_H

#include <stdint.h>

#include "linmdp_features.h"
#include "linmdp_weights.h"

/* The regression of one step. */
typedef struct {
    linmdp_wide Lambda[LINMDP_PACKED]; /* lam I + sum phi phi' */
    linmdp_wide u[LINMDP_D];           /* sum phi r */
    linmdp_weights q;
} linmdp_step;

#if LINMDP_COUNTS
/* N = sum phi e_{s'}', by columns: all that sum phi V(s') needs to know of the samples. */
typedef struct {
    linmdp_wide N[LINMDP_S][LINMDP_D];
} linmdp_past;
#else
/* One transition (s, a, s'). */
typedef struct {
    linmdp_kept state, next;
    linmdp_index_a action;
    uint8_t alive; /* 0 where s' is terminal, so that nothing follows */
} linmdp_sample;

typedef struct {
    linmdp_sample sample[LINMDP_PHASE - 1]; /* the last episode of a phase stores nothing */
    uint16_t count;
} linmdp_past;
#endif

typedef struct {
    linmdp_step step[LINMDP_H];
    linmdp_past past[LINMDP_H > 1 ? LINMDP_H - 1 : 1]; /* nothing follows the last step */
    linmdp_wide factor[LINMDP_PACKED];                 /* of Lambda of the step ahead, while planning */
    uint32_t seed, draws, tie_key;                     /* randomness is a hash of these: see linmdp_draws.h */
    uint32_t phase;                                    /* episodes begun in this phase */
    uint16_t next;                                     /* the step to be observed next; LINMDP_H between episodes */
    uint8_t learning;                                  /* whether this episode's samples are stored */
} linmdp_learner;

#endif
