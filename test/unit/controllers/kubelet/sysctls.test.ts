import { expect, test } from 'vitest';
import { forbiddenSysctl, sysctlsOf } from '../../../../src/controllers/kubelet/sysctls.ts';
import { pod } from '../workloads/samples.ts';

const podWith = (sysctls: Readonly<Record<string, string>>) =>
  pod('p', {
    spec: {
      securityContext: { sysctls: Object.entries(sysctls).map(([name, value]) => ({ name, value })) },
    },
  });

test('a kubelet takes safe sysctls only, with dots or slashes', () => {
  expect(forbiddenSysctl(pod('p'))).toBeUndefined();
  expect(
    forbiddenSysctl(podWith({ 'kernel/shm_rmid_forced': '1', 'net.ipv4.tcp_syncookies': '0' })),
  ).toBeUndefined();
  expect(forbiddenSysctl(podWith({ 'net.ipv4.tcp_syncookies': '0', 'kernel/msgmax': '1' }))).toBe(
    'forbidden sysctl: "kernel.msgmax" not allowlisted',
  );
});

test('sysctls are files of their kernel namespace', () => {
  const named = podWith({
    'net.ipv4.tcp_rmem': '1 2 3',
    'kernel/shm_rmid_forced': '1',
    'net/ipv4/conf/eth0.100/forwarding': '1',
    'net.ipv4.conf.eth0/100.arp_filter': '1',
  });
  expect(sysctlsOf(named, 'ipc')).toEqual(new Map([['kernel/shm_rmid_forced', '1']]));
  expect([...sysctlsOf(named, 'net').keys()]).toEqual([
    'net/ipv4/tcp_rmem',
    'net/ipv4/conf/eth0.100/forwarding',
    'net/ipv4/conf/eth0.100/arp_filter',
  ]);
});
