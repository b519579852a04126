/* linmdp.h: an online learner in static memory.
 *
 * The caller owns one `linmdp_learner`, usually static. There is no other state: no heap, no globals, nothing of libc
 * but math.h. Sizes are constants of linmdp_config.h, which also states the bytes and the worst-case cost of each call.
 *
 *     static linmdp_learner learner;
 *
 *     linmdp_init(&learner, seed);
 *     for (;;) {
 *         linmdp_begin_episode(&learner);                       planning happens here
 *         for (unsigned h = 0; h < LINMDP_H && !ended; h++) {
 *             int action = linmdp_act(&learner, h, state);      negative: a status
 *             ... do it, measure reward and next_state ...
 *             linmdp_observe(&learner, h, state, action, reward, next_state, ended);
 *             state = next_state;
 *         }
 *         linmdp_end_episode(&learner);
 *     }
 *
 * Every call returns a status below 0 when it is refused, and then has changed nothing. The one exception is
 * LINMDP_NOT_A_NUMBER from linmdp_begin_episode: the sums are no longer numbers, and only linmdp_init helps.
 *
 * A learner is plain memory without pointers: copy it to save it, copy it back to go on, on the same build.
 * Two learners share nothing; one learner must not be used from two threads (or an interrupt) at once.
 */
#ifndef LINMDP_H_INCLUDED
#define LINMDP_H_INCLUDED

#include <stdint.h>

#include "linmdp_config.h"
#include "linmdp_features.h"
#include "linmdp_memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a call can say. */
enum {
    LINMDP_OK = 0,
    LINMDP_BAD_STEP = -1,     /* h is not the step that comes next, or no episode has begun */
    LINMDP_BAD_STATE = -2,    /* no state of this task: out of range, or not a number */
    LINMDP_BAD_ACTION = -3,   /* not in 0 .. LINMDP_A - 1 */
    LINMDP_BAD_REWARD = -4,   /* outside LINMDP_REWARD_LOW .. LINMDP_REWARD_HIGH, or not a number */
    LINMDP_NOT_A_NUMBER = -5, /* rounding has eaten the regression */
    LINMDP_NULL = -6          /* a null pointer */
};

/* Forget everything. `seed` decides how ties are broken and which samples are kept; any value will do. */
int linmdp_init(linmdp_learner *learner, uint32_t seed);

/* Before the first step of an episode. Plans when it is time to: the one expensive call. */
int linmdp_begin_episode(linmdp_learner *learner);

/* The action for `state` at step h, 0 .. LINMDP_A - 1, or a status below 0. Asking twice gives the same answer. */
int linmdp_act(const linmdp_learner *learner, unsigned h, linmdp_state state);

/* The same where only the actions may be taken whose place in `allowed` is not 0: if that of linmdp_act may not, one of
 * the best that may. LINMDP_BAD_ACTION: none may. */
int linmdp_act_within(const linmdp_learner *learner, unsigned h, linmdp_state state, const uint8_t allowed[LINMDP_A]);

/* What came of it. Steps are observed in order, each once. `terminated` is not 0 when nothing follows `next_state`;
 * an episode that is merely cut off just has no more steps. */
int linmdp_observe(linmdp_learner *learner, unsigned h, linmdp_state state, int action, linmdp_real reward,
                   linmdp_state next_state, int terminated);

/* After the last step of an episode, also of one that ended early. */
int linmdp_end_episode(linmdp_learner *learner);

/* What the learner believes each action to be worth: an upper bound. */
int linmdp_q_values(const linmdp_learner *learner, unsigned h, linmdp_state state, linmdp_real q[LINMDP_A]);

#ifdef __cplusplus
}
#endif

#endif
