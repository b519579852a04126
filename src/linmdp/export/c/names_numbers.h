/* The state with these fields: pass LINMDP_STATE(slot) to a call. */
static inline linmdp_slot linmdp_encode(linmdp_fields fields)
{
    linmdp_slot slot;
$into
    return slot;
}

/* The fields of a state. */
static inline linmdp_fields linmdp_decode(linmdp_state state)
{
    linmdp_fields fields;
$out
    return fields;
}

#endif
