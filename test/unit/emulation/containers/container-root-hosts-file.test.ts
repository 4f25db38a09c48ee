import { describe, expect, it } from 'vitest';
import { hostnameOf, hostsFile } from '../../../../src/emulation/containers/container-root.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';

const pod = (spec: Pod['spec'], name = 'web-0'): Pod => ({
  metadata: { name, namespace: 'shop' },
  spec,
  status: {},
});

// pkg/kubelet/kubelet_pods.go managedHostsFileContent
describe('the hosts file of a Pod', () => {
  it.each<[Pod['spec'], readonly string[]]>([
    [{}, ['10.1.0.2\tweb-0', 'fd00::2\tweb-0']],
    [
      { subdomain: 'web' },
      [
        '10.1.0.2\tweb-0.web.shop.svc.cluster.local\tweb-0',
        'fd00::2\tweb-0.web.shop.svc.cluster.local\tweb-0',
      ],
    ],
    [{ hostNetwork: true }, []],
    [
      { hostNetwork: true, hostAliases: [{ ip: '192.0.2.1', hostnames: ['a.example', 'b.example'] }] },
      ['', '# Entries added by HostAliases.', '192.0.2.1\ta.example\tb.example'],
    ],
  ])('of %j ends with %j', (spec, lines) => {
    const text = hostsFile(pod(spec), ['10.1.0.2', 'fd00::2'], 'web-0');
    const header = spec.hostNetwork === true ? ' (host network)' : '';
    expect(text.startsWith(`# Kubernetes-managed hosts file${header}.\n127.0.0.1\tlocalhost\n::1\t`)).toBe(
      true,
    );
    expect(text.split('\n').slice(7, -1)).toEqual(lines);
  });

  it('has the name of the Pod, without what a host name does not end with', () => {
    expect(hostnameOf(pod({ hostname: 'db' }))).toBe('db');
    expect(hostnameOf(pod({}, `${'a'.repeat(62)}-b`))).toBe('a'.repeat(62));
  });
});
