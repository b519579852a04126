/* linmdp_names.h: what states and actions mean. Written by `linmdp export`. */
#ifndef LINMDP_NAMES_H
#define LINMDP_NAMES_H

#include "linmdp_features.h"

/* What a state is made of. */
typedef struct {
$members
} linmdp_fields;

/* What an action does. */
enum {
$actions
};

/* The same in words. */
static inline const char *linmdp_action_name(int action)
{
    static const char *const name[LINMDP_A] = {$words};
    return action >= 0 && action < LINMDP_A ? name[action] : "none";
}

