/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libsluice-verbs.so: the module that uses libibverbs (InfiniBand, RoCE).
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transports/verbs/module.h"

enum { most_at_once = 16, first_gids = 256, most_gids = 1 << 16 };

static const uint64_t of_receive = UINT64_MAX; /* the id of all receive requests */

struct device {
  struct ibv_context* context;
  struct ibv_pd* domain;
  struct ibv_comp_channel* channel;
  int queues;
};

struct queue {
  struct device* device;
  struct ibv_cq* completions;
  struct ibv_qp* pair;
};

static int last_error(void) { return errno ? errno : EIO; }

/* The library waits 5 seconds for a device's file that this process may not open, in case udev is
 * about to make it (the kernel has by then), and then gives another reason. */
static struct ibv_context* open_at_once(struct ibv_device* device) {
  char path[sizeof("/dev/infiniband/") + sizeof(device->dev_name)];
  int file;
  snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
  file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return NULL;
  close(file);
  return ibv_open_device(device);
}

static void ask_port(struct ibv_context* context, struct SluiceVerbsPort* to) {
  struct ibv_port_attr port;
  memset(&port, 0, sizeof(port));
  to->error = ibv_query_port(context, to->number, &port);
  if (to->error != 0) return;
  to->active = port.state == IBV_PORT_ACTIVE;
  to->ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  to->mtu = (uint8_t)port.active_mtu;
  to->lid = port.lid;
  to->max_message = port.max_msg_sz;
}

static void name_port(struct ibv_device* device, int number, struct SluiceVerbsPort* to) {
  memset(to, 0, sizeof(*to));
  strncpy(to->device, ibv_get_device_name(device), sizeof(to->device) - 1);
  to->number = (uint8_t)number;
  to->foreign = device->transport_type != IBV_TRANSPORT_IB;
}

static int list_error(struct ibv_device* device, int error, struct SluiceVerbsPort* to, int room) {
  if (room < 1) return 1;
  name_port(device, 0, to);
  to->error = error;
  return 1;
}

/* Returns how many ports the device has; fills in as many as there is room for. */
static int list_ports(struct ibv_device* device, struct SluiceVerbsPort* ports, int room) {
  struct ibv_device_attr about;
  struct ibv_context* context;
  int i, error;
  errno = 0;
  context = open_at_once(device);
  if (!context) return list_error(device, last_error(), ports, room);
  error = ibv_query_device(context, &about);
  for (i = 0; error == 0 && i < about.phys_port_cnt && i < room; ++i) {
    name_port(device, i + 1, &ports[i]);
    ask_port(context, &ports[i]);
  }
  ibv_close_device(context);
  return error == 0 ? about.phys_port_cnt : list_error(device, error, ports, room);
}

/* A child of fork() may not take pages that the device writes to away from this process. 0 or an
 * errno. (Newer kernels need nothing.) */
static int survive_forks(void) {
  if (ibv_is_fork_initialized() == IBV_FORK_UNNEEDED) return 0;
  return ibv_fork_init();
}

static int list(struct SluiceVerbsPort* ports, int room) {
  int i, devices = 0, count = 0;
  const int unsafe = survive_forks();
  struct ibv_device** const found = unsafe == 0 ? ibv_get_device_list(&devices) : NULL;
  if (unsafe != 0) return -unsafe;
  if (!found) return errno == ENOSYS ? 0 : -last_error();
  for (i = 0; i < devices; ++i) {
    const int rest = count < room ? room - count : 0;
    count += list_ports(found[i], rest > 0 ? ports + count : ports, rest);
  }
  ibv_free_device_list(found);
  return count;
}

static struct ibv_context* open_named(const char* name) {
  int i, devices = 0;
  struct ibv_context* context = NULL;
  struct ibv_device** const found = ibv_get_device_list(&devices);
  if (!found) return NULL;
  errno = ENODEV;
  for (i = 0; i < devices && !context; ++i) {
    if (strcmp(ibv_get_device_name(found[i]), name) == 0) context = open_at_once(found[i]);
  }
  ibv_free_device_list(found);
  return context;
}

static void close_device(void* opened) {
  struct device* const device = opened;
  if (device->channel) ibv_destroy_comp_channel(device->channel);
  if (device->domain) ibv_dealloc_pd(device->domain);
  if (device->context) ibv_close_device(device->context);
  free(device);
}

static int unblock(int descriptor) { return fcntl(descriptor, F_SETFL, O_NONBLOCK); }

static int open_device(const char* name, void** opened, int* descriptor) {
  struct device* const device = calloc(1, sizeof(*device));
  int error;
  if (!device) return ENOMEM;
  device->context = open_named(name);
  if (device->context) device->domain = ibv_alloc_pd(device->context);
  if (device->domain) device->channel = ibv_create_comp_channel(device->context);
  if (device->channel && unblock(device->context->async_fd) == 0 &&
      unblock(device->channel->fd) == 0) {
    *opened = device;
    *descriptor = device->channel->fd;
    return 0;
  }
  error = last_error();
  close_device(device);
  return error;
}

static uint8_t kind_of(uint32_t type) {
  if (type == IBV_GID_TYPE_ROCE_V2) return SLUICE_GID_ROCE_2;
  return type == IBV_GID_TYPE_ROCE_V1 ? SLUICE_GID_ROCE_1 : SLUICE_GID_INFINIBAND;
}

/* The valid entries of all ports, allocated. The kernel refuses a table that is too small (EINVAL).
 * Returns how many there are, or an errno, negated. */
static int read_table(struct ibv_context* context, struct ibv_gid_entry** entries) {
  size_t room;
  for (room = first_gids; room <= most_gids; room *= 2) {
    int found;
    *entries = calloc(room, sizeof(**entries));
    if (!*entries) return -ENOMEM;
    found = (int)ibv_query_gid_table(context, *entries, room, 0);
    if (found >= 0) return found;
    free(*entries);
    if (found != -EINVAL) return found;
  }
  return -EINVAL;
}

static int gids(void* opened, uint8_t port, struct SluiceVerbsGid* gids, int room) {
  struct device* const device = opened;
  struct ibv_gid_entry* entries;
  int i, count = 0;
  const int found = read_table(device->context, &entries);
  if (found < 0) return found;
  for (i = 0; i < found; ++i) {
    if (entries[i].port_num != port || entries[i].gid_index > UINT8_MAX) continue;
    if (count < room) {
      memcpy(gids[count].raw, entries[i].gid.raw, sizeof(gids[count].raw));
      gids[count].index = (uint8_t)entries[i].gid_index;
      gids[count].kind = kind_of(entries[i].gid_type);
      gids[count].interface = entries[i].ndev_ifindex;
    }
    ++count;
  }
  free(entries);
  return count;
}

static int add_region(void* opened, void* memory, size_t bytes, enum SluiceVerbsUse use,
                      struct SluiceVerbsRegion* region) {
  static const int access[] = {
      IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
      IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ};
  struct device* const device = opened;
  const int is_programs = use == SLUICE_VERBS_LENT || use == SLUICE_VERBS_FILLED;
  struct ibv_mr* made;
  if (is_programs && ibv_is_fork_initialized() != IBV_FORK_UNNEEDED) return EOPNOTSUPP;
  made = ibv_reg_mr(device->domain, memory, bytes, access[use]);
  if (!made) return last_error();
  region->handle = made;
  region->local_key = made->lkey;
  region->remote_key = made->rkey;
  return 0;
}

static void drop_region(void* handle) { ibv_dereg_mr(handle); }

static void drop_queue(void* handle) {
  struct queue* const queue = handle;
  if (queue->pair) ibv_destroy_qp(queue->pair);
  if (queue->completions) ibv_destroy_cq(queue->completions);
  --queue->device->queues;
  free(queue);
}

static int make_parts(struct device* device, struct queue* queue, struct SluiceVerbsQueue* asked) {
  struct ibv_qp_init_attr needs;
  queue->completions = ibv_create_cq(device->context, (int)(asked->sends + asked->receives), queue,
                                     device->channel, 0);
  if (!queue->completions) return last_error();
  memset(&needs, 0, sizeof(needs));
  needs.send_cq = needs.recv_cq = queue->completions;
  needs.qp_type = IBV_QPT_RC;
  needs.cap.max_send_wr = asked->sends;
  needs.cap.max_recv_wr = asked->receives;
  needs.cap.max_send_sge = needs.cap.max_recv_sge = 1;
  needs.cap.max_inline_data = asked->inlined;
  queue->pair = ibv_create_qp(device->domain, &needs);
  if (!queue->pair && asked->inlined > 0) {
    needs.cap.max_inline_data = 0;
    queue->pair = ibv_create_qp(device->domain, &needs);
  }
  if (!queue->pair) return last_error();
  asked->inlined = needs.cap.max_inline_data;
  return 0;
}

/* How many reads may be under way, at most as many as are asked for. */
static uint8_t most_reads(struct ibv_context* context, uint8_t asked) {
  struct ibv_device_attr about;
  int most;
  if (asked == 0 || ibv_query_device(context, &about) != 0) return asked > 0;
  most = about.max_qp_rd_atom < about.max_qp_init_rd_atom ? about.max_qp_rd_atom
                                                          : about.max_qp_init_rd_atom;
  if (most < 1) most = 1;
  return (uint8_t)(most < asked ? most : asked);
}

static int initialize(struct ibv_qp* pair, const struct SluiceVerbsQueue* asked) {
  struct ibv_qp_attr init;
  memset(&init, 0, sizeof(init));
  init.qp_state = IBV_QPS_INIT;
  init.port_num = asked->port;
  init.qp_access_flags = asked->reads > 0 ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  return ibv_modify_qp(pair, &init,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int make_queue(void* opened, struct SluiceVerbsQueue* asked) {
  struct queue* const queue = calloc(1, sizeof(*queue));
  int error;
  if (!queue) return ENOMEM;
  queue->device = opened;
  ++queue->device->queues;
  error = make_parts(opened, queue, asked);
  asked->reads = most_reads(queue->device->context, asked->reads);
  if (error == 0) error = initialize(queue->pair, asked);
  if (error != 0) {
    drop_queue(queue);
    return error;
  }
  asked->handle = queue;
  asked->number = queue->pair->qp_num;
  return 0;
}

/* A lost packet is sent again 6 times, each after 4.096 us * 2^timeout = 4.3 s or more: a network
 * that reorganizes itself has about as long as with TCP. That a peer died, its socket tells. (7
 * times is for ever with Soft-RoCE.) */
static int connect_queue(void* handle, const struct SluiceVerbsWay* way) {
  struct queue* const queue = handle;
  struct ibv_qp_attr to;
  int error;
  memset(&to, 0, sizeof(to));
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = way->mtu;
  to.dest_qp_num = way->peer_number;
  to.rq_psn = way->peer_sequence;
  to.max_dest_rd_atomic = way->reads;
  to.min_rnr_timer = 12;
  to.ah_attr.port_num = way->port;
  to.ah_attr.dlid = way->peer_lid;
  to.ah_attr.is_global = way->global;
  memcpy(to.ah_attr.grh.dgid.raw, way->peer_gid, sizeof(way->peer_gid));
  to.ah_attr.grh.sgid_index = way->gid_index;
  to.ah_attr.grh.hop_limit = 64;
  error = ibv_modify_qp(queue->pair, &to,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return error;
  memset(&to, 0, sizeof(to));
  to.qp_state = IBV_QPS_RTS;
  to.timeout = 20;
  to.retry_cnt = 6;
  to.rnr_retry = 7;
  to.sq_psn = way->own_sequence;
  to.max_rd_atomic = way->reads;
  return ibv_modify_qp(queue->pair, &to,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void fill(const struct SluiceVerbsWrite* write, struct ibv_sge* piece,
                 struct ibv_send_wr* request) {
  piece->addr = (uintptr_t)write->from;
  piece->length = write->bytes;
  piece->lkey = write->local_key;
  memset(request, 0, sizeof(*request));
  request->wr_id = write->id;
  request->sg_list = piece;
  request->num_sge = write->bytes > 0 ? 1 : 0;
  request->opcode = write->has_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request->send_flags =
      (write->signalled ? IBV_SEND_SIGNALED : 0) | (write->inlined ? IBV_SEND_INLINE : 0);
  request->imm_data = htobe32(write->immediate);
  request->wr.rdma.remote_addr = write->to;
  request->wr.rdma.rkey = write->remote_key;
}

static int write_all(void* handle, const struct SluiceVerbsWrite* writes, int count) {
  struct queue* const queue = handle;
  struct ibv_sge pieces[most_at_once];
  struct ibv_send_wr requests[most_at_once], *bad;
  int i;
  if (count < 1 || count > most_at_once) return EINVAL;
  for (i = 0; i < count; ++i) {
    fill(&writes[i], &pieces[i], &requests[i]);
    if (i > 0) requests[i - 1].next = &requests[i];
  }
  return ibv_post_send(queue->pair, requests, &bad);
}

static int read_all(void* handle, const struct SluiceVerbsRead* reads, int count) {
  struct queue* const queue = handle;
  struct ibv_sge pieces[most_at_once];
  struct ibv_send_wr requests[most_at_once], *bad;
  int i;
  if (count < 1 || count > most_at_once) return EINVAL;
  memset(requests, 0, sizeof(requests));
  for (i = 0; i < count; ++i) {
    pieces[i].addr = (uintptr_t)reads[i].to;
    pieces[i].length = reads[i].bytes;
    pieces[i].lkey = reads[i].local_key;
    requests[i].wr_id = reads[i].id;
    requests[i].sg_list = &pieces[i];
    requests[i].num_sge = 1;
    requests[i].opcode = IBV_WR_RDMA_READ;
    requests[i].send_flags =
        (reads[i].signalled ? IBV_SEND_SIGNALED : 0) | (reads[i].fenced ? IBV_SEND_FENCE : 0);
    requests[i].wr.rdma.remote_addr = reads[i].from;
    requests[i].wr.rdma.rkey = reads[i].remote_key;
    if (i > 0) requests[i - 1].next = &requests[i];
  }
  return ibv_post_send(queue->pair, requests, &bad);
}

static int receive(void* handle, int count) {
  struct queue* const queue = handle;
  struct ibv_recv_wr request, *bad;
  int error = 0;
  memset(&request, 0, sizeof(request));
  request.wr_id = of_receive;
  while (error == 0 && count-- > 0) error = ibv_post_recv(queue->pair, &request, &bad);
  return error;
}

static int poll_queue(void* handle, struct SluiceVerbsDone* done, int room) {
  struct queue* const queue = handle;
  struct ibv_wc found[most_at_once];
  const int count =
      ibv_poll_cq(queue->completions, room < most_at_once ? room : most_at_once, found);
  int i;
  for (i = 0; i < count; ++i) {
    done[i].id = found[i].wr_id;
    done[i].status = (int)found[i].status;
    done[i].received = found[i].wr_id == of_receive;
    done[i].immediate = 0;
    if (done[i].received && found[i].status == IBV_WC_SUCCESS) {
      done[i].immediate = be32toh(found[i].imm_data);
    }
  }
  return count;
}

static int stop(void* handle) {
  struct queue* const queue = handle;
  struct ibv_qp_attr to;
  memset(&to, 0, sizeof(to));
  to.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(queue->pair, &to, IBV_QP_STATE);
}

static int arm(void* handle) {
  struct queue* const queue = handle;
  return ibv_req_notify_cq(queue->completions, 0);
}

static void take_events(void* opened) {
  struct device* const device = opened;
  struct ibv_cq* of;
  void* context;
  int most = device->queues;
  while (most-- > 0 && ibv_get_cq_event(device->channel, &of, &context) == 0) {
    ibv_ack_cq_events(of, 1);
  }
}

static const char* status_text(int status) { return ibv_wc_status_str((enum ibv_wc_status)status); }

static void describe(const struct ibv_async_event* event, struct SluiceVerbsEvent* to) {
  switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR:
      to->kind = SLUICE_VERBS_QUEUE_FAILED;
      to->number = event->element.qp->qp_num;
      break;
    case IBV_EVENT_CQ_ERR:
      to->kind = SLUICE_VERBS_QUEUE_FAILED;
      to->number = ((struct queue*)event->element.cq->cq_context)->pair->qp_num;
      break;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
      to->kind =
          event->event_type == IBV_EVENT_PORT_ERR ? SLUICE_VERBS_PORT_DOWN : SLUICE_VERBS_PORT_UP;
      to->port = (uint8_t)event->element.port_num;
      break;
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
      to->kind = SLUICE_VERBS_PORT_CHANGED;
      to->port = (uint8_t)event->element.port_num;
      break;
    case IBV_EVENT_DEVICE_FATAL:
      to->kind = SLUICE_VERBS_DEVICE_LOST;
      break;
    default:
      break;
  }
}

static int next_event(void* opened, struct SluiceVerbsEvent* event) {
  struct device* const device = opened;
  struct ibv_async_event found;
  memset(event, 0, sizeof(*event));
  errno = 0;
  if (ibv_get_async_event(device->context, &found) != 0) {
    return errno == EAGAIN || errno == EINTR ? 0 : -last_error();
  }
  event->text = ibv_event_type_str(found.event_type);
  describe(&found, event);
  ibv_ack_async_event(&found);
  return 1;
}

static const struct SluiceVerbs table = {SLUICE_VERBS_VERSION,
                                         list,
                                         open_device,
                                         close_device,
                                         gids,
                                         add_region,
                                         drop_region,
                                         make_queue,
                                         drop_queue,
                                         connect_queue,
                                         write_all,
                                         read_all,
                                         receive,
                                         poll_queue,
                                         stop,
                                         arm,
                                         take_events,
                                         status_text,
                                         next_event};

__attribute__((visibility("default"))) const struct SluiceVerbs* sluice_verbs(void) {
  return &table;
}
