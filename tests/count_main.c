/* Plays what Python recorded and prints the most multiply-adds that any call took: built with -DLINMDP_COUNT. */
#include <stdio.h>

#include "linmdp.h"
#include "selftest_vectors.h"

unsigned long linmdp_counted_quick, linmdp_counted_wide;

typedef struct {
    unsigned long quick, wide;
} most;

static void note(most *seen)
{
    seen->quick = linmdp_counted_quick > seen->quick ? linmdp_counted_quick : seen->quick;
    seen->wide = linmdp_counted_wide > seen->wide ? linmdp_counted_wide : seen->wide;
    linmdp_counted_quick = linmdp_counted_wide = 0;
}

int main(void)
{
    static linmdp_learner learner;
    most act = {0, 0}, observe = {0, 0}, begin = {0, 0};
    unsigned h = 0;
    linmdp_init(&learner, linmdp_recorded_seed);
    linmdp_counted_quick = linmdp_counted_wide = 0;
    for (unsigned long i = 0; i < linmdp_recorded_steps; i++, h++) {
        const linmdp_recorded *r = &linmdp_recorded_step[i];
        if (r->first) {
            h = 0;
            linmdp_end_episode(&learner);
            linmdp_begin_episode(&learner);
            note(&begin);
        }
        linmdp_act(&learner, h, linmdp_recall(&r->state));
        note(&act);
        linmdp_observe(&learner, h, linmdp_recall(&r->state), r->action, r->reward, linmdp_recall(&r->next),
                       r->terminated);
        note(&observe);
    }
    printf("act %lu %lu\nobserve %lu %lu\nbegin_episode %lu %lu\n", act.quick, act.wide, observe.quick, observe.wide,
           begin.quick, begin.wide);
    return 0;
}
