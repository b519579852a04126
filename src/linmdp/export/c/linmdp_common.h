/* linmdp_common.h: what the learners share, and what each of them brings. */
#ifndef LINMDP_COMMON_H
#define LINMDP_COMMON_H

#include "linmdp.h"
#include "linmdp_value.h"

/* Brought by each learner: z_h = sum phi V(s') over its samples of step h, for the V of the weights `ahead`.
 * LINMDP_OK or LINMDP_NOT_A_NUMBER. */
int linmdp_target(linmdp_learner *learner, unsigned h, const linmdp_wide ahead[LINMDP_D], linmdp_wide beta,
                  linmdp_wide z[LINMDP_D]);

/* Every w from all samples, with a width that was chosen before. */
int linmdp_plan(linmdp_learner *learner);

/* If it is time to, plan once more without a bonus: greedy weights, for the width. */
int linmdp_renew_width(linmdp_learner *learner);

/* V of a state at step h: the value of its best action. */
int linmdp_seen_value(const linmdp_core *core, unsigned h, const linmdp_wide w[LINMDP_D], linmdp_wide beta,
                      const linmdp_seen *seen, linmdp_wide *V);

/* The same of a state that is not ready yet. */
int linmdp_state_value(const linmdp_core *core, unsigned h, const linmdp_wide w[LINMDP_D], linmdp_wide beta,
                       const linmdp_kept *kept, linmdp_wide *V);

/* phi(s, a) */
void linmdp_features_of(const linmdp_kept *state, unsigned action, linmdp_real phi[LINMDP_D]);

/* A learner that has learned nothing. */
void linmdp_core_init(linmdp_core *core, uint32_t seed);

/* An episode begins: the draws of its ties, and beta if it is to be planned. */
void linmdp_open(linmdp_core *core, int planned);

/* What is wrong with an observation, before anything is changed. */
int linmdp_check(const linmdp_learner *learner, unsigned h, linmdp_state state, int action, linmdp_real reward,
                 linmdp_state next_state);

/* An observation that is right: note it, and give its phi. */
void linmdp_note(linmdp_core *core, unsigned h, linmdp_state state, int action, linmdp_real reward, int terminated,
                 linmdp_real phi[LINMDP_D]);

/* Lambda += phi phi', u += phi r */
void linmdp_add_sample(linmdp_core *core, unsigned h, const linmdp_real phi[LINMDP_D], linmdp_real reward);

#endif
