/* selftest_vectors.c: see selftest_vectors.h. Written by `linmdp export`. */
#include "selftest_vectors.h"

const uint32_t linmdp_recorded_seed = $seed;
const unsigned long linmdp_recorded_steps = $steps, linmdp_decided_steps = $decided;

const linmdp_recorded linmdp_recorded_step[] = {
$recorded
};

const linmdp_decision linmdp_decided_step[] = {
$decisions
};
