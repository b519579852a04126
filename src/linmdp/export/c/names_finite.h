/* The state with these fields; LINMDP_NO_STATE, which every call refuses, if one of them is out of range. */
static inline linmdp_slot linmdp_encode(linmdp_fields fields)
{
    if ($wrong)
        return LINMDP_NO_STATE;
    return $code;
}

/* The fields of a state. */
static inline linmdp_fields linmdp_decode(linmdp_state state)
{
    linmdp_fields fields;
$out
    return fields;
}

#endif
