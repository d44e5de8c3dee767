/* The bytes of a group's file: one budget that several processes share, kept in GPUCAP_DIR as
 * "<name>.gpucap-group" and mapped by every member. docs/wire-format.md describes it in words.
 * A member writes to its own slot alone. No word here is a lock: who is a member is told by POSIX record locks on the
 * file (one byte a slot, see GPUCAP_GROUP_SLOT_LOCK), which the kernel drops when the process dies, and only who holds
 * the lock of the gate may take a slot, add a device, or remove the file.
 *
 * Units: bytes, nanoseconds. All integers are little-endian, naturally aligned, and change by atomic accesses. */
#ifndef GPUCAP_WIRE_GROUP_LAYOUT_H
#define GPUCAP_WIRE_GROUP_LAYOUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "GPUCAPG\1" read as a little-endian word. */
#define GPUCAP_GROUP_MAGIC UINT64_C(0x0147504143555047)
#define GPUCAP_GROUP_MAJOR 1
#define GPUCAP_GROUP_MINOR 0
#define GPUCAP_GROUP_SUFFIX ".gpucap-group"
#define GPUCAP_GROUP_SLOTS 256
#define GPUCAP_GROUP_DEVICES 32
#define GPUCAP_GROUP_NAME_BYTES 64
/* Offsets that are locked; far behind the content, so that nobody mistakes them for it. */
#define GPUCAP_GROUP_GATE_LOCK (INT64_C(1) << 40)
#define GPUCAP_GROUP_SLOT_LOCK(slot) ((INT64_C(1) << 40) + 1 + (slot))

/* A device is in the table from the first time that a member uses it. */
struct gpucap_group_device {
  uint8_t uuid[16];
  uint64_t limit_bytes;   /* of the group on this device; all ones: none has been given. `gpucap set` changes it */
  uint64_t context_bytes; /* what a context of the latest member took there when it was made; 0: not known yet */
  uint64_t reserved[4];
};

struct gpucap_group_header {
  uint64_t magic;
  uint16_t major;
  uint16_t minor;
  uint32_t header_bytes; /* also where the slots begin */
  uint64_t file_bytes;
  uint32_t slot_count;
  uint32_t slot_bytes;
  uint64_t created_realtime_ns;
  char name[GPUCAP_GROUP_NAME_BYTES]; /* NUL-padded */
  uint32_t device_count;              /* entries of `devices` that are complete */
  uint32_t highest_slot;              /* no slot from here on has ever been taken */
  uint64_t next_ticket;               /* of those who wait; the first is 1 */
  uint64_t reserved[9];
  struct gpucap_group_device devices[GPUCAP_GROUP_DEVICES];
};

/* One member on one device. Its memory as the others must count it is held + asked. */
struct gpucap_group_share {
  int64_t held_bytes;   /* what it has, and what was granted to calls that are in the driver at this moment */
  int64_t asked_bytes;  /* put down before it is known whether it fits, and taken back or moved to held_bytes */
  uint64_t wait_ticket; /* 0: does not wait; smaller ones came first */
  uint64_t wait_bytes;
};

struct gpucap_group_slot {
  uint64_t incarnation; /* counts the members that have had this slot; changes before anything of the new one counts */
  uint32_t pid;         /* in the member's own PID namespace */
  uint32_t uid;
  uint64_t pid_namespace;
  uint64_t start_ticks;
  uint64_t joined_realtime_ns;
  uint64_t reserved[3];
  struct gpucap_group_share shares[GPUCAP_GROUP_DEVICES];
};

#ifdef __cplusplus
}
static_assert(sizeof(gpucap_group_device) == 64);
static_assert(sizeof(gpucap_group_header) == 2240);
static_assert(sizeof(gpucap_group_share) == 32);
static_assert(sizeof(gpucap_group_slot) == 1088);
#endif

#endif
