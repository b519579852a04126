/* gp_random.c: so many steps of random inputs, one in eight of them wrong. Prints how many were refused and made. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "linmdp.h"

static uint32_t state = 12345;

static uint32_t draw(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)state * n) >> 32);
}

static linmdp_slot random_state(int wrong)
{
    linmdp_slot slot;
#if LINMDP_FINITE
    slot = wrong ? LINMDP_S + draw(1000) : draw(LINMDP_S);
#else
    static const double strange[] = {1e30, -1e30, 0.0, 1e-30, 3e38};
    for (unsigned i = 0; i < LINMDP_N; i++)
        slot.x[i] = (linmdp_real)(draw(50) == 0 ? strange[draw(5)] : (double)draw(2000) / 1000 - 1);
    if (wrong)
        slot.x[draw(LINMDP_N)] = (linmdp_real)(draw(2) ? NAN : INFINITY);
#endif
    return slot;
}

int main(int count, char **words)
{
    static linmdp_learner learner;
    unsigned long refused = 0, made = 0, most = count > 1 ? strtoul(words[1], NULL, 10) : 1000;
    const double size[] = {1, 1e-3, 1e6, 0, 1e12};
    linmdp_init(&learner, 1);
    while (made < most) {
        linmdp_begin_episode(&learner);
        const unsigned length = draw(3) == 0 ? LINMDP_H : draw(LINMDP_H);
        for (unsigned h = 0; h < length;) {
            const int wrong = draw(8) == 0;
            const linmdp_slot x = random_state(wrong && draw(2)), y = random_state(wrong && draw(2));
            const unsigned at = wrong && draw(3) == 0 ? draw(3 * LINMDP_H) : h;
            const int action = draw(2) ? linmdp_act(&learner, h, LINMDP_STATE(x)) : (int)draw(LINMDP_A + (uint32_t)wrong);
            const double reward = wrong && draw(9) == 0 ? NAN : ((double)draw(2001) / 1000 - 1) * size[draw(5)];
            const int said = linmdp_observe(&learner, at, LINMDP_STATE(x), action, (linmdp_real)reward,
                                            LINMDP_STATE(y), draw(30) == 0);
            if (said == LINMDP_OK) {
                h++;
                made++;
            } else {
                refused++;
            }
        }
        if (draw(10) > 0)
            linmdp_end_episode(&learner);
    }
    linmdp_real q[LINMDP_A];
    const linmdp_slot x = random_state(0);
    linmdp_begin_episode(&learner);
    const int status = linmdp_q_values(&learner, 0, LINMDP_STATE(x), q);
    printf("made %lu\nrefused %lu\nstatus %d\n", made, refused, status);
    for (unsigned a = 0; a < LINMDP_A; a++)
        if (!(q[a] > -LINMDP_REAL_MAX && q[a] < LINMDP_REAL_MAX))
            return 1;
    return status;
}
