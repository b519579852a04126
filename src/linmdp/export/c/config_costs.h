 * RAM: sizeof(linmdp_learner) is $size bytes, and a call takes $stack bytes of stack at most.
 * Read-only tables of the features: $flash bytes.
 * Worst case of each call, in multiply-adds of linmdp_quick and of linmdp_wide, and in looks at a state:
 *                                   quick           wide     looks
$rows
 * $look. Besides: a square root for each action of a state looked at, one for
 * each row of a matrix that is factored, and reading phi(s, a), LINMDP_D numbers at a time.
 * linmdp_observe merges centres once there are more than $centres, each time in a wider radius: that is rare.
