/* The bytes of a gpucap segment: one file a process image, written by that process alone, mapped read-only by any
 * number of readers. Plain C so that other programs can read it; docs/wire-format.md describes it in words.
 * All integers are little-endian and naturally aligned. Words that the writer changes while others read are read and
 * written with 8-byte (or 4-byte) atomic accesses; nothing here is a lock.
 *
 * Units: bytes, nanoseconds. "monotonic" is CLOCK_MONOTONIC of the machine, "realtime" is CLOCK_REALTIME. */
#ifndef GPUCAP_WIRE_LAYOUT_H
#define GPUCAP_WIRE_LAYOUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "GPUCAP\0\1" read as a little-endian word. */
#define GPUCAP_WIRE_MAGIC UINT64_C(0x0100504143555047)
/* A reader accepts any minor of its own major: a minor only adds regions or uses reserved bytes. */
#define GPUCAP_WIRE_MAJOR 2
#define GPUCAP_WIRE_MINOR 0
#define GPUCAP_WIRE_SUFFIX ".gpucap" /* file name: <pid>.<created_realtime_ns, 16 hex digits>.gpucap */
#define GPUCAP_WIRE_NO_LIMIT UINT64_MAX
#define GPUCAP_WIRE_MAX_DEVICES 64
#define GPUCAP_WIRE_MAX_REGIONS 16
#define GPUCAP_WIRE_MAX_LANES 256

enum gpucap_state { GPUCAP_STATE_BUILDING = 0, GPUCAP_STATE_LIVE = 1, GPUCAP_STATE_ENDED = 2 };

enum gpucap_region_type {
  GPUCAP_REGION_NONE = 0,
  GPUCAP_REGION_DEVICES = 1,   /* struct gpucap_device, one a device that the process sees, by ordinal */
  GPUCAP_REGION_API_NAMES = 2, /* struct gpucap_api_name, indexed by API number (0 is "none") */
  GPUCAP_REGION_API_COUNTERS =
      3, /* struct gpucap_api_counter, index = (device * lanes + lane) * API names + API number */
  GPUCAP_REGION_RING_HEADER = 4, /* struct gpucap_ring_header, one */
  GPUCAP_REGION_EVENTS = 5,      /* struct gpucap_event, a power of two of them */
  GPUCAP_REGION_CONTROL = 6,     /* struct gpucap_control, one */
  GPUCAP_REGION_LANES = 7        /* struct gpucap_lane, index = device * lanes + lane */
};

/* What a process does with a request that does not fit. */
enum gpucap_on_limit { GPUCAP_ON_LIMIT_DENY = 0, GPUCAP_ON_LIMIT_WAIT = 1, GPUCAP_ON_LIMIT_OBSERVE = 2 };

/* Where the limit that rules a device comes from. */
enum gpucap_limit_source {
  GPUCAP_LIMIT_FROM_NOWHERE = 0, /* no limit */
  GPUCAP_LIMIT_FROM_ENVIRONMENT = 1,
  GPUCAP_LIMIT_FROM_POLICY = 2, /* /etc/gpucap.conf */
  GPUCAP_LIMIT_FROM_CONTROL = 3 /* `gpucap set`, while the process ran */
};

/* What stood in the way of the latest refusal. */
enum gpucap_refused_by {
  GPUCAP_REFUSED_BY_NOTHING = 0,
  GPUCAP_REFUSED_BY_CAP = 1,
  GPUCAP_REFUSED_BY_GROUP = 2,
  GPUCAP_REFUSED_BY_CARD = 3 /* the driver itself: the card is full */
};

struct gpucap_region {
  uint32_t type; /* enum gpucap_region_type; readers skip types that they do not know */
  uint32_t stride;
  uint64_t offset; /* from the start of the file, a multiple of 64 */
  uint64_t count;
};

/* At offset 0. */
struct gpucap_header {
  uint64_t magic;
  uint16_t major;
  uint16_t minor;
  uint32_t header_bytes;
  uint64_t file_bytes;
  uint32_t state; /* enum gpucap_state; LIVE with no record lock held on byte 0 means killed */
  uint32_t pid;   /* in the writer's own PID namespace */
  uint32_t uid;
  uint32_t region_count;
  uint64_t pid_namespace;       /* inode of /proc/self/ns/pid, 0 if unknown */
  uint64_t start_ticks;         /* field 22 of /proc/self/stat, 0 if unknown */
  uint64_t created_realtime_ns; /* also in the file's name */
  uint64_t created_monotonic_ns;
  uint64_t updated_monotonic_ns; /* last time that the writer looked at the card; not a heartbeat */
  uint64_t ended_realtime_ns;    /* 0 until state is ENDED */
  char run_id[32];               /* GPUCAP_RUN_ID as `gpucap run` set it, NUL-padded, may be empty */
  char version[32];              /* of the library that wrote this, NUL-padded */
  char command[1024];            /* /proc/self/cmdline cut to fit: NUL between arguments, NUL-padded */
  struct gpucap_region regions[GPUCAP_WIRE_MAX_REGIONS];
  char group[64];           /* the budget that it shares, NUL-padded, empty if none */
  uint32_t on_limit;        /* enum gpucap_on_limit */
  uint32_t parent_pid;      /* when the segment was made, in the writer's own PID namespace */
  uint64_t wait_at_most_ns; /* of GPUCAP_ON_LIMIT=wait:<time>; 0 without a bound */
  uint8_t reserved[408];
};

/* Where the figure of the driver's own memory comes from. */
enum gpucap_truth {
  GPUCAP_TRUTH_NONE = 0,       /* nowhere: driver_bytes is an estimate from context creation */
  GPUCAP_TRUTH_NVML = 1,       /* NVML's per-process figure */
  GPUCAP_TRUTH_DEVICE_DIFF = 2 /* differences of the card's used memory around context creation */
};

/* Gauges of one device; see gpucap_lane for the rest. used = linear + array + pool + vmm + managed + driver, never
 * shown below zero. Everything but managed is what NVML counts to the process. */
struct gpucap_device {
  uint32_t ordinal;
  uint32_t truth; /* enum gpucap_truth */
  uint8_t uuid[16];
  char name[64];
  uint64_t physical_bytes;
  uint64_t limit_bytes; /* GPUCAP_WIRE_NO_LIMIT: watched, not capped */
  int64_t linear_bytes; /* cuMemAlloc, cuMemAllocPitch, in blocks as the driver takes them */
  int64_t array_bytes;
  int64_t pool_bytes; /* reserved by stream-ordered pools, whether lent out or kept */
  int64_t vmm_bytes;
  int64_t managed_bytes; /* charged in full at allocation; NVML does not count it to the process */
  int64_t driver_bytes;  /* what the driver took by itself: contexts, modules, local memory, ... */
  uint64_t peak_bytes;   /* highest used */
  uint64_t peak_monotonic_ns;
  uint64_t refused_count;
  uint64_t refused_bytes; /* sum of what was refused */
  uint64_t last_refused_bytes;
  uint64_t last_refused_monotonic_ns;
  uint64_t looked_bytes; /* NVML's figure at the last look */
  uint64_t looked_monotonic_ns;
  uint64_t look_count;
  uint64_t context_bytes;      /* what the latest context took when it was made */
  uint64_t active;             /* 1 once the process has had a context or an allocation here */
  uint64_t policy_limit_bytes; /* what the policy file allows at most; GPUCAP_WIRE_NO_LIMIT: it sets none */
  uint64_t group_limit_bytes;  /* as last seen; GPUCAP_WIRE_NO_LIMIT: none, or in no group */
  uint64_t group_used_bytes;   /* by all members on this device, as last seen */
  uint32_t limit_source;       /* enum gpucap_limit_source */
  uint32_t last_refused_by;    /* enum gpucap_refused_by */
  uint32_t last_refused_api;   /* API number */
  uint32_t last_refused_origin;
  uint64_t waiting_count;        /* threads that wait for room at this moment */
  uint64_t waiting_bytes;        /* what they ask for */
  uint64_t waiting_monotonic_ns; /* since when the first of them waits */
  uint64_t waits_count;          /* requests that ever waited, and were then served or refused */
  uint64_t waits_ns;             /* how long they waited altogether */
  uint64_t observed_count;       /* let through in observe mode, though over the limit */
  uint64_t observed_bytes;
  uint64_t failed_count; /* turned down by the driver itself with out-of-memory: the card was full */
  uint8_t reserved[168];
};

/* What `gpucap set` asks of a running process: the one region that somebody else than the writer writes to, and only
 * the file's owner can. limit_bytes first, then sequence; the process takes it over at its next request, bounded by
 * policy_limit_bytes, and shows the outcome in gpucap_device.limit_bytes. */
struct gpucap_control {
  uint64_t sequence; /* counts the changes */
  uint8_t pad[56];
  uint64_t limit_bytes[GPUCAP_WIRE_MAX_DEVICES]; /* by ordinal; GPUCAP_WIRE_NO_LIMIT: watch only */
};

/* What changes at every call is kept in lanes, so that threads which allocate at once need not share a cache line: a
 * thread writes to a lane of its own, those that found none share lane 0. The figure of a device is the sum over its
 * lanes, in which a single one may be below zero: one thread allocates, another frees. */
struct gpucap_lane {
  int64_t live_count;     /* live allocations of all kinds */
  int64_t reserved_bytes; /* promised to calls that are in the driver at this moment; in no gauge of the device */
  uint8_t reserved[48];
};

struct gpucap_api_name {
  char name[48]; /* the entry point as exported, NUL-padded */
};

struct gpucap_api_counter {
  uint64_t calls; /* that reached the driver and succeeded */
  uint64_t refused;
  uint64_t bytes; /* requested by the calls that succeeded */
  uint64_t reserved;
};

struct gpucap_ring_header {
  uint64_t capacity; /* number of events, a power of two */
  uint8_t pad0[56];
  uint64_t head; /* events ever claimed; event number n lives in slot n % capacity */
  uint8_t pad1[56];
  uint64_t dropped; /* events never written because a slot was still being written */
  uint8_t pad2[56];
};

enum gpucap_operation {
  GPUCAP_OP_CHARGE = 1,  /* memory taken */
  GPUCAP_OP_RELEASE = 2, /* memory given back */
  GPUCAP_OP_REFUSE = 3,  /* refused by gpucap */
  GPUCAP_OP_FAIL = 4,    /* refused by the driver, for its own reasons */
  GPUCAP_OP_DRIVER = 5,  /* a look found that the driver's own share had changed: bytes is the new share */
  GPUCAP_OP_LIMIT = 6,   /* the limit was changed from outside: bytes is the new one */
  GPUCAP_OP_WAIT = 7,    /* began to wait for room */
  GPUCAP_OP_OBSERVE = 8  /* over the limit, but let through in observe mode */
};

enum gpucap_kind {
  GPUCAP_KIND_NONE = 0,
  GPUCAP_KIND_LINEAR = 1,
  GPUCAP_KIND_ARRAY = 2,
  GPUCAP_KIND_POOL = 3,
  GPUCAP_KIND_VMM = 4,
  GPUCAP_KIND_MANAGED = 5,
  GPUCAP_KIND_CONTEXT = 6
};

struct gpucap_event {
  uint64_t sequence;     /* n + 1 once event number n is complete; bit 63 set while it is being written; 0 never used */
  uint64_t monotonic_ns; /* when the call came back; of the kernel's last tick where latency_ns is 0 */
  uint32_t thread;       /* kernel thread id in the writer's PID namespace */
  int32_t result;        /* CUresult that the program got */
  uint16_t api;          /* the driver entry point, index into the API names */
  uint16_t origin;       /* the runtime entry point that led to it, 0 if none */
  uint8_t device;
  uint8_t operation;  /* enum gpucap_operation */
  uint8_t kind;       /* enum gpucap_kind */
  uint8_t refused_by; /* of REFUSE, OBSERVE, WAIT: enum gpucap_refused_by */
  uint64_t address;   /* device pointer or handle, 0 if none */
  uint64_t bytes;     /* requested for CHARGE, REFUSE, FAIL; charged for RELEASE */
  uint64_t used_after;
  uint32_t latency_ns; /* time in the driver, saturated; 0: not measured, as of most calls that take microseconds */
  uint32_t reserved;
};

#ifdef __cplusplus
}
static_assert(sizeof(gpucap_region) == 24);
static_assert(sizeof(gpucap_header) == 2048);
static_assert(sizeof(gpucap_device) == 512);
static_assert(sizeof(gpucap_control) == 576);
static_assert(sizeof(gpucap_lane) == 64);
static_assert(sizeof(gpucap_api_name) == 48);
static_assert(sizeof(gpucap_api_counter) == 32);
static_assert(sizeof(gpucap_ring_header) == 192);
static_assert(sizeof(gpucap_event) == 64);
#endif

#endif
