// Access to the fields of any message through its descriptor. Only proto/message*.c include this. A
// struct that a .def file generates is a block of memory here: a descriptor says where each field
// is and of which type.
#ifndef PROTO_MESSAGE_FIELD_H
#define PROTO_MESSAGE_FIELD_H

#include "proto/message.h"

// Whether fields of this type have a pointer and a count.
bool field_is_array(enum field_type type);
// The size of one element of an array, in bytes.
size_t field_element_size(const struct field *field);
// The number of elements of an array.
size_t field_element_count(const struct field *field, const void *value);
// The pointer that the field holds: of an array, a text or a single sub-message.
void *field_pointer(const struct field *field, const void *value);
// Sets that pointer, and the count of an array.
void field_set_pointer(const struct field *field, void *value, void *pointer, size_t count);
// Whether the field is sent: it is present, or it is required and its empty value is a value.
bool field_is_sent(const struct field *field, const void *value);

#endif
