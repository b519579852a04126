/* cycles.c: what acting and observing cost on this processor: cycles on a board, instructions under QEMU.
 *
 * SysTick counts the clock of the core. Under QEMU (-icount shift=0) it counts instructions, at a scale that a run of
 * instructions without effect tells; on a board that scale is 1, but for the waits of the flash.
 */
#include <stdint.h>

#include "board.h"
#include "linmdp.h"
#include "selftest_vectors.h"

#define SYSTICK ((volatile uint32_t *)0xE000E010) /* control, reload, current value */
#define NOTHINGS 600

static uint32_t now(void) { return SYSTICK[2]; }

static uint32_t since(uint32_t then) { return (then - now()) & 0xFFFFFF; }

static uint32_t nothing(void)
{
    const uint32_t then = now();
    __asm__ volatile(".rept 600\n nop\n .endr");
    return since(then);
}

int main(void)
{
    static linmdp_learner learner;
    uint64_t act = 0, observe = 0;
    unsigned h = 0;
    SYSTICK[1] = 0xFFFFFF;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5; /* on, with the clock of the core */
    const uint32_t scale = nothing();
    if (scale == 0 || linmdp_init(&learner, linmdp_recorded_seed) != LINMDP_OK)
        return 1;
    for (unsigned long i = 0; i < linmdp_recorded_steps; i++, h++) {
        const linmdp_recorded *r = &linmdp_recorded_step[i];
        const linmdp_state state = linmdp_recall(&r->state), next = linmdp_recall(&r->next);
        if (r->first) {
            h = 0;
            (void)linmdp_end_episode(&learner);
            (void)linmdp_begin_episode(&learner);
        }
        uint32_t then = now();
        (void)linmdp_act(&learner, h, state);
        act += since(then);
        then = now();
        (void)linmdp_observe(&learner, h, state, r->action, r->reward, next, r->terminated);
        observe += since(then);
    }
    say_number("act ", (unsigned long)(act * NOTHINGS / scale / linmdp_recorded_steps));
    say_number("observe ", (unsigned long)(observe * NOTHINGS / scale / linmdp_recorded_steps));
    return 0;
}
