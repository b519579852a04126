/* masks.c: so many steps in a world that says in each which actions may be taken. Prints the steps, how many actions were
 * not allowed, how many that were the learner's own would not have been, and the reward of a step at the end. */
#include <stdio.h>
#include <stdlib.h>

#include "linmdp.h"

static uint32_t seed = 12345;

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)seed * n) >> 32);
}

static linmdp_slot random_state(void)
{
    linmdp_slot slot;
#if LINMDP_FINITE
    slot = draw(LINMDP_S);
#else
    for (unsigned i = 0; i < LINMDP_N; i++)
        slot.x[i] = (linmdp_real)((double)draw(2000) / 1000 - 1);
#endif
    return slot;
}

int main(int count, char **words)
{
    static linmdp_learner learner;
    uint8_t allowed[LINMDP_A], none[LINMDP_A] = {0};
    unsigned long steps = 0, wrong = 0, other = 0, most = count > 1 ? strtoul(words[1], NULL, 10) : 1000;
    double late = 0;
    linmdp_init(&learner, 1);
    while (steps < most) {
        linmdp_begin_episode(&learner);
        linmdp_slot x = random_state();
        for (unsigned h = 0; h < LINMDP_H && steps < most; h++, steps++) {
            for (unsigned a = 0; a < LINMDP_A; a++)
                allowed[a] = (uint8_t)draw(2);
            allowed[draw(LINMDP_A)] = 1;
            const int action = linmdp_act_within(&learner, h, LINMDP_STATE(x), allowed);
            const int own = linmdp_act(&learner, h, LINMDP_STATE(x));
            if (action < 0 || own < 0 || linmdp_act_within(&learner, h, LINMDP_STATE(x), none) != LINMDP_BAD_ACTION ||
                linmdp_act_within(&learner, h, LINMDP_STATE(x), NULL) != LINMDP_NULL)
                return 1;
            wrong += !allowed[action] || (allowed[own] && action != own);
            other += !allowed[own];
            const linmdp_slot y = random_state();
            const double reward = action == LINMDP_A - 1 ? 1 : 0;
            late += 10 * steps >= 9 * most ? reward : 0;
            if (linmdp_observe(&learner, h, LINMDP_STATE(x), action, (linmdp_real)reward, LINMDP_STATE(y), 0) != LINMDP_OK)
                return 2;
            x = y;
        }
        linmdp_end_episode(&learner);
    }
    printf("steps %lu\nwrong %lu\nother %lu\nlate %g\n", steps, wrong, other, 10 * late / (double)most);
    return 0;
}
