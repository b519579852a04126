/* linmdp_memory.h: all that LSVI-UCB-Fixed keeps: the samples of one phase. */
#ifndef LINMDP_MEMORY_H
#define LINMDP_MEMORY_H

#include <stdint.h>

#include "linmdp_core.h"

#if LINMDP_COUNTS
/* N = sum phi e_{s'}', by columns: all that sum phi V(s') needs to know of the samples. */
typedef struct {
    linmdp_wide N[LINMDP_S][LINMDP_D];
} linmdp_store;
#else
/* One transition (s, a, s'). */
typedef struct {
    linmdp_kept state, next;
    linmdp_index_a action;
    uint8_t alive; /* 0 where s' is terminal, so that nothing follows */
} linmdp_sample;

typedef struct {
    linmdp_sample sample[LINMDP_ROOM];
    uint32_t count;
} linmdp_store;
#endif

#define LINMDP_STORES (LINMDP_GROUPS > 1 ? LINMDP_GROUPS - 1 : 1) /* nothing follows the last step */

typedef struct {
    linmdp_core core;
    linmdp_store store[LINMDP_STORES];
    uint32_t phase;   /* episodes begun in this phase */
    uint8_t learning; /* whether this episode's samples are stored */
} linmdp_learner;

#endif
