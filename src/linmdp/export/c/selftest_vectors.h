/* selftest_vectors.h: what the Python agent saw, chose and believed. */
#ifndef LINMDP_SELFTEST_VECTORS_H
#define LINMDP_SELFTEST_VECTORS_H

#include <stdint.h>

#include "linmdp_config.h"
#include "linmdp_features.h"

typedef struct {
    linmdp_kept state, next;
    linmdp_real reward;
    linmdp_index_a action;
    uint8_t first;      /* the first step of an episode */
    uint8_t terminated; /* nothing follows */
    double q[LINMDP_A]; /* before the step */
} linmdp_recorded;

typedef struct {
    linmdp_kept state;
    uint16_t h;
    linmdp_index_a action;
} linmdp_decision;

extern const uint32_t linmdp_recorded_seed;
extern const unsigned long linmdp_recorded_steps, linmdp_decided_steps;
extern const linmdp_recorded linmdp_recorded_step[];
extern const linmdp_decision linmdp_decided_step[];

#endif
