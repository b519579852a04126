/* linmdp_policy.c: see linmdp_policy.h. Written by `linmdp export`. */
#include "linmdp_policy.h"

static const linmdp_index_a action[LINMDP_H][LINMDP_S] = {
$rows
};

int linmdp_policy(unsigned h, linmdp_state state)
{
    return h < LINMDP_H && linmdp_is_state(state) ? (int)action[h][state] : -1;
}
