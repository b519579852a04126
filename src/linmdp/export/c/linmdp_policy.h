/* linmdp_policy.h: the policy as it was when the learner was exported. It learns nothing, and needs no RAM. */
#ifndef LINMDP_POLICY_H
#define LINMDP_POLICY_H

#include "linmdp_config.h"
#include "linmdp_features.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The action for `state` at step h, 0 .. LINMDP_A - 1; of equal ones the first. -1 if there is no such step or state. */
int linmdp_policy(unsigned h, linmdp_state state);

#ifdef __cplusplus
}
#endif

#endif
