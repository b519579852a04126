/* linmdp_config.h: sizes and parameters, for all other files. Written by `linmdp export`.
 *
 * $run
 */
#ifndef LINMDP_CONFIG_H
#define LINMDP_CONFIG_H

#include <stdint.h>

typedef $kind linmdp_real;  /* states, features, rewards, and Q as it is shown */
typedef double linmdp_wide; /* sums over many samples, and planning: 24 bits would not do */
typedef $quick linmdp_quick; /* the factors that acting reads, once or twice in each step */
#define LINMDP_QUICK_SQRT sqrt$quick_suffix
#define LINMDP_REAL_MAX $most
#define LINMDP_WIDE_SQRT sqrt
#define LINMDP_WIDE_LOG log
#define LINMDP_WIDE_MAX 1e300

typedef $state linmdp_index_s; /* a finite state in memory */
typedef $action linmdp_index_a;  /* an action in memory */

#define LINMDP_H               $H /* steps of an episode */
#define LINMDP_AHEAD           $ahead /* steps that are planned: the last ones of it */
#define LINMDP_A               $A /* actions */
#define LINMDP_D               $d /* length of phi(s, a) */
#define LINMDP_S               $S /* states */
#define LINMDP_N               $N /* numbers in a state */
#define LINMDP_BLOCKS          $blocks /* no phi has entries in two of these blocks, */
#define LINMDP_P               $P /* each of this length, and nor has Lambda */
#define LINMDP_GROUPS          $groups /* regressions: one a step, or one for all steps */
#define LINMDP_LEVELS          $levels /* Q: one a step, or one for all of them */
#define LINMDP_DISCOUNT        $discount /* of the next step's value */
#define LINMDP_SWEEPS          $sweeps /* backups of a planning, at most; it ends before */
#define LINMDP_TOLERANCE       $tolerance /* when no weight moves by more than this fraction of the cap */
#define LINMDP_DIVERGING       $diverging /* or when one moves this many times as far as an earlier one did */
#define LINMDP_AUTO            $auto /* 1: beta comes from the data: see linmdp_width.h */
#define LINMDP_BETA            $beta /* width of the bonus, to begin with */
#define LINMDP_AUTO_MULTIPLES  $multiples /* of the noise; a bandit chooses */
#define LINMDP_AUTO_Z          $z /* standard deviations of the noise */
#define LINMDP_AUTO_FLOOR      $floor /* the noise is never taken to be less, */
#define LINMDP_AUTO_CEILING    $ceiling /* and beta never to be more */
#define LINMDP_AUTO_CONFIDENCE $confidence /* of the bandit, in standard deviations of the returns */
#define LINMDP_AUTO_MEMORY     $memory /* of t episodes the last t / MEMORY + 20 count */
#define LINMDP_AUTO_PLAYED     $played /* faded episodes of a multiple before any bound is asked */
#define LINMDP_AUTO_RENEW      $renew /* greedy weights are planned when the episodes have grown by this */
#define LINMDP_LAMBDA          $lam /* of the ridge regression */
#define LINMDP_CAP             $cap /* the largest value that Q can have */
#define LINMDP_CAP_REMAINING   $cap_remaining /* 1: it falls by so much a step: */
#define LINMDP_CAP_STEP        $cap_step /* the most that one step pays */
#define LINMDP_RANDOM_TIES     $random_ties /* 1: any of the best actions, 0: the first */
#define LINMDP_TIE_ACT         $tie_act /* Q that differ by less are equal */
#define LINMDP_REWARD_LOW      $low /* with space for rounding */
#define LINMDP_REWARD_HIGH     $high
#define LINMDP_CLOSE           $close /* the self-test: how far Q may be from that in Python */
#define LINMDP_CENTRES         $centres /* different next states that are kept, at most */
#define LINMDP_MERGES          $merges /* 1: there may be more, and those that are near each other are merged */
#define LINMDP_PLACES          $places /* places for them: one more where they are merged */
#define LINMDP_NEIGHBOURS      $neighbours /* centres that may stand for one next state together, */
#define LINMDP_REACH           $reach /* within so many radii of it */
#define LINMDP_SHARE_RIDGE     $share_ridge /* so that their weights are those of one solution */
#define LINMDP_WIDER           $wider /* the radius grows by this factor at least */
#define LINMDP_SLACK           $slack /* of squared distances: as far apart as the radius is within it */
#define LINMDP_REPLAN          $replan /* plan when the episodes have grown by this fraction */

#endif
