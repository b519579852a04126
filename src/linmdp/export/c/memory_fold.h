/* linmdp_memory.h: all that LSVI-UCB-Fold keeps. Its size does not depend on how long it learns. */
#ifndef LINMDP_MEMORY_H
#define LINMDP_MEMORY_H

#include <stdint.h>

#include "linmdp_clock.h"
#include "linmdp_core.h"

/* One transition (s, a, s'). Where states are finite it is kept once, however often it comes. */
typedef struct {
#if LINMDP_FINITE
    uint32_t times; /* how often it came */
#define LINMDP_TIMES(sample) ((linmdp_wide)(sample)->times)
#else
#define LINMDP_TIMES(sample) ((linmdp_wide)1)
#endif
    linmdp_kept state, next;
    linmdp_index_a action;
    uint8_t alive; /* 0 where s' is terminal, so that nothing follows */
} linmdp_sample;

/* The transitions of one regression that are kept. */
typedef struct {
    linmdp_sample buffer[LINMDP_M]; /* the newest, */
    linmdp_sample probe[LINMDP_M];  /* and some of those that were folded */
    uint32_t folded;                /* how many were, so far */
    uint16_t probes;
    uint16_t staying; /* while it is folded: the first so many of the buffer are not */
} linmdp_store;

/* What stands for the folded samples in the planning of one Q: sum phi V(s') = c + J (w - w_ref) + what the probes say. */
typedef struct {
    linmdp_wide c[LINMDP_D];
    linmdp_wide V_ref[LINMDP_M]; /* V at the probes when they were folded */
#if LINMDP_SLOPES
    linmdp_wide w_ref[LINMDP_D];
    linmdp_wide J[LINMDP_D][LINMDP_D]; /* sum phi psi', psi the slope of V(s') in w; J[k] is column k */
    linmdp_best best_ref[LINMDP_M];    /* the best action at the probes; -1 where V has no slope */
#endif
} linmdp_past;

/* Room to work in. */
typedef struct {
    linmdp_wide matrix[LINMDP_PACKED]; /* lam I + sum phi phi' over the probes, and its factor */
#if LINMDP_SLOPES
    linmdp_wide columns[LINMDP_COLUMNS][LINMDP_D];
    linmdp_best buffer_best[LINMDP_M], probe_best[LINMDP_M];
#endif
} linmdp_scratch;

/* Nothing follows the last step of a task that is not stationary. */
#define LINMDP_STORES (LINMDP_GROUPS > 1 ? LINMDP_GROUPS - 1 : 1)
#define LINMDP_PASTS (LINMDP_LEVELS > 1 ? LINMDP_LEVELS - 1 : 1)

typedef struct {
    linmdp_core core;
    linmdp_store store[LINMDP_STORES];
    linmdp_past past[LINMDP_PASTS];
    linmdp_scratch scratch;
    linmdp_clock clock;
    uint16_t count[LINMDP_STORES]; /* transitions in each buffer */
} linmdp_learner;

#endif
