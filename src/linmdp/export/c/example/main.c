/* main.c: a complete application. It learns over a line: standard input and output here, a UART on a board.
 *
 *     in:   an episode begins in a state       $line
 *     out:  what to do                         ACTION NAME
 *     in:   what came of it                    REWARD ENDED $line
 *     out:  what to do next                    ACTION NAME, or "end"
 *
 * ENDED is 1 where nothing follows, else 0; an episode also ends after LINMDP_H steps. Then the next one begins.
 * Put your own sensors and actuators in place of `read_fields` and `perform`, and it is your firmware.
 */
#include <stdio.h>
#include <stdlib.h>

#include "linmdp.h"
#include "linmdp_names.h"

typedef struct {
    linmdp_real reward;
    int ended;
    linmdp_fields fields;
} outcome;

static linmdp_learner learner; /* all the memory there is */

static void fail(const char *what, int status)
{
    fprintf(stderr, "%s: status %d\n", what, status);
    exit(1);
}

/* What the sensors say; 0 at the end of the line. */
static int read_fields(linmdp_fields *fields)
{
    return scanf("$marks", $addresses) == $count;
}

/* Do it, wait for what comes of it. */
static int perform(int action, outcome *seen)
{
    printf("%d %s\n", action, linmdp_action_name(action));
    return scanf("$real %d", &seen->reward, &seen->ended) == 2 && read_fields(&seen->fields);
}

static int episode(linmdp_fields fields)
{
    outcome seen = {0, 0, fields};
    int status = linmdp_begin_episode(&learner); /* plans: the one expensive call */
    if (status != LINMDP_OK)
        fail("planning", status);
    for (unsigned h = 0; h < LINMDP_H && !seen.ended; h++) {
        const linmdp_slot before = linmdp_encode(seen.fields);
        const int action = linmdp_act(&learner, h, LINMDP_STATE(before));
        if (action < 0)
            fail("acting", action);
        if (!perform(action, &seen))
            return 0;
        const linmdp_slot after = linmdp_encode(seen.fields);
        status = linmdp_observe(&learner, h, LINMDP_STATE(before), action, seen.reward, LINMDP_STATE(after), seen.ended);
        if (status != LINMDP_OK)
            fail("observing", status);
    }
    linmdp_end_episode(&learner);
    puts("end");
    return 1;
}

int main(void)
{
    linmdp_fields fields;
    setvbuf(stdout, NULL, _IONBF, 0); /* what is said is said at once */
    linmdp_init(&learner, 1);
    while (read_fields(&fields) && episode(fields)) {
    }
    return 0;
}
