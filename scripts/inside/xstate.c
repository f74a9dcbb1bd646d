/*
 * Lets user-mode Linux run where the processor's saved state is larger than it knows.
 *
 * The kernel sets the extended state of a traced process only as a whole: a buffer that
 * is shorter than what the processor has is refused with EFAULT. The user-mode Linux of
 * Debian 12 holds 2.7 KiB, enough for AVX-512; a processor with AMX has 11 KiB, and no
 * process would start. This is put before its ptrace: the rest is read from the process
 * and handed back as it is. No program there can use what is not saved, for the kernel
 * lets none have AMX that has not asked for it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define XSTATE 0x202 /* NT_X86_XSTATE */

static long traced(long request, long pid, void *address, void *data) { return syscall(SYS_ptrace, request, pid, address, data); }

long ptrace(enum __ptrace_request request, ...) {
  static unsigned char whole[1 << 16] __attribute__((aligned(64)));
  va_list rest;
  va_start(rest, request);
  long pid = va_arg(rest, int);
  void *address = va_arg(rest, void *), *data = va_arg(rest, void *);
  va_end(rest);
  if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
    long word, status = traced(request, pid, address, &word); /* the C library's way */
    return status < 0 ? status : (errno = 0, word);
  }
  if (request != PTRACE_SETREGSET || (long)address != XSTATE) return traced(request, pid, address, data);
  struct iovec *given = data, all = {whole, sizeof whole};
  if (traced(PTRACE_GETREGSET, pid, address, &all) < 0) return -1;
  memcpy(whole, given->iov_base, given->iov_len < all.iov_len ? given->iov_len : all.iov_len);
  return traced(PTRACE_SETREGSET, pid, address, &all);
}
