/* linmdp_wasm.c: one learner behind calls that take numbers alone. The host writes states into its memory. */
#include "linmdp.h"

#include <stdint.h>

#define EXPORTED(name) __attribute__((export_name(#name), used))

static linmdp_learner learner;
static linmdp_slot state, next_state;
static linmdp_real q[LINMDP_A];

/* What linmdp.mjs reads: see there. */
static const struct {
    uint32_t H, A, D, S, N, real, bytes;
    linmdp_learner *learner;
    linmdp_slot *state, *next_state;
    linmdp_real *q;
} layout = {LINMDP_H,
            LINMDP_A,
            LINMDP_D,
#if LINMDP_FINITE
            LINMDP_S,
            0,
#else
            0,
            LINMDP_N,
#endif
            sizeof(linmdp_real),
            sizeof(linmdp_learner),
            &learner,
            &state,
            &next_state,
            q};

EXPORTED(layout) const void *wasm_layout(void) { return &layout; }

EXPORTED(init) int wasm_init(uint32_t seed) { return linmdp_init(&learner, seed); }

EXPORTED(begin_episode) int wasm_begin_episode(void) { return linmdp_begin_episode(&learner); }

EXPORTED(act) int wasm_act(unsigned h) { return linmdp_act(&learner, h, LINMDP_STATE(state)); }

EXPORTED(observe) int wasm_observe(unsigned h, int action, linmdp_real reward, int terminated)
{
    return linmdp_observe(&learner, h, LINMDP_STATE(state), action, reward, LINMDP_STATE(next_state), terminated);
}

EXPORTED(end_episode) int wasm_end_episode(void) { return linmdp_end_episode(&learner); }

EXPORTED(q_values) int wasm_q_values(unsigned h) { return linmdp_q_values(&learner, h, LINMDP_STATE(state), q); }

EXPORTED(beta) double wasm_beta(void) { return learner.core.beta; }

#if !LINMDP_AUTO
/* Another width of the bonus, from now on. */
EXPORTED(set_beta) void wasm_set_beta(double beta) { learner.core.beta = beta; }
#endif
