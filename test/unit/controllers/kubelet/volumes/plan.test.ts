import { describe, expect, it } from 'vitest';
import {
  certificatesOf,
  MountError,
  planVolumes,
  type PodCertificate,
} from '../../../../../src/controllers/kubelet/volumes/plan.ts';
import type {
  Container,
  PersistentVolumeSpec,
  Pod,
} from '../../../../../src/objects/types/core.generated.ts';
import { node, pod } from '../../workloads/samples.ts';

const mounted: Partial<Container> = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
const asDevice: Partial<Container> = { volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] };

function using(container: Partial<Container>, where: 'containers' | 'initContainers' = 'containers'): Pod {
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }];
  return pod('p', { spec: { volumes, [where]: [{ name: 'main', image: 'i', ...container }] } });
}

function plan(each: Pod, volume: PersistentVolumeSpec): unknown {
  const objects = { configMap: () => undefined, secret: () => undefined, volumeOf: () => volume };
  try {
    return planVolumes({ pod: each, node: node('n'), objects, tokens: new Map() });
  } catch (error) {
    if (error instanceof MountError) return `${error.reason}: ${error.message}`;
    throw error;
  }
}

describe('the volume of a claim', () => {
  const folder = { hostPath: { path: '/d', type: 'DirectoryOrCreate' } };
  const lists = 'unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]';

  it('is what its containers say it is', () => {
    for (const where of ['containers', 'initContainers'] as const) {
      expect(plan(using(mounted, where), { ...folder, volumeMode: 'Block' })).toBe(
        `FailedMount: Unable to attach or mount volumes: ${lists}: volume data has volumeMode Block, but is specified in volumeMounts`,
      );
      expect(plan(using(asDevice, where), folder)).toBe(
        `FailedMount: Unable to attach or mount volumes: ${lists}: volume data has volumeMode Filesystem, but is specified in volumeDevices`,
      );
      expect(plan(using(asDevice, where), { ...folder, volumeMode: 'Block' })).toMatch(
        /^FailedMapVolume: MapVolume.SetUpDevice failed for volume "data" : block devices are not simulated/,
      );
    }
    expect(plan(using(mounted), folder)).toMatchObject([
      { hostPath: '/d', hostPathType: 'DirectoryOrCreate' },
    ]);
    expect(plan(using(mounted), { local: { path: '/l' } })).toMatchObject([{ hostPathType: 'Directory' }]);
  });
});

describe('a projected trust bundle', () => {
  const pem = (...bodies: string[]) =>
    bodies.map((body) => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`).join('');
  const bundle = (name: string, trustBundle: string, labels: Record<string, string> = {}) => ({
    metadata: { name, labels },
    spec: { signerName: 'e.com/s', trustBundle },
  });
  const bundles = [
    bundle('a', pem('QQ==', 'Qg=='), { l: 'a' }),
    bundle('b', `text\n${pem('Qg==', 'Qw==')}`, { l: 'b' }),
  ];
  const files = (clusterTrustBundle: object): unknown => {
    const sources = [{ clusterTrustBundle: { path: 'ca.pem', ...clusterTrustBundle } }];
    const objects = {
      configMap: () => undefined,
      secret: () => undefined,
      trustBundle: (name: string) => bundles.find(({ metadata }) => metadata.name === name),
      trustBundlesOf: (signer: string) => bundles.filter(({ spec }) => spec.signerName === signer),
    };
    const each = pod('p', { spec: { volumes: [{ name: 'v', projected: { sources } }], containers: [] } });
    try {
      const [volume] = planVolumes({ pod: each, node: node('n'), objects, tokens: new Map() });
      return volume?.files.map(({ path, content, mode }) => [path, content.toString(), mode]);
    } catch (error) {
      if (error instanceof MountError) return error.message;
      throw error;
    }
  };
  const fault = (why: string) => `MountVolume.SetUp failed for volume "v" : ${why}`;
  const none = fault('combination of signerName and labelSelector matched zero ClusterTrustBundles');

  it.each([
    [{ name: 'b' }, [['ca.pem', pem('Qg==', 'Qw=='), 0o644]]],
    [{ name: 'c', optional: true }, [['ca.pem', '', 0o644]]],
    [
      { name: 'c' },
      fault('while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "c" not found'),
    ],
    [{ signerName: 'e.com/s', labelSelector: {} }, [['ca.pem', pem('QQ==', 'Qg==', 'Qw=='), 0o644]]],
    [
      { signerName: 'e.com/s', labelSelector: { matchLabels: { l: 'a' } } },
      [['ca.pem', pem('QQ==', 'Qg=='), 0o644]],
    ],
    [{ signerName: 'e.com/s' }, none],
    [{ signerName: 'e.com/s', optional: true }, [['ca.pem', '', 0o644]]],
    [{ signerName: 'e.com/t', labelSelector: {} }, none],
  ])('%j is %j', (wanted, expected) => {
    expect(files(wanted)).toEqual(expected);
  });
});

describe('a projected certificate', () => {
  const paths = { credentialBundlePath: 'bundle.pem', keyPath: 'key.pem', certificateChainPath: 'chain.pem' };
  const planned = (podCertificate: object, certificate?: PodCertificate): unknown => {
    const sources = [{ downwardAPI: { items: [] } }, { podCertificate }];
    const each = pod('p', { spec: { volumes: [{ name: 'v', projected: { sources } }], containers: [] } });
    const [projection] = certificatesOf(each);
    const certificates = new Map(certificate === undefined ? [] : [[projection?.key ?? '', certificate]]);
    const objects = { configMap: () => undefined, secret: () => undefined };
    const [volume] = planVolumes({ pod: each, node: node('n'), objects, tokens: new Map(), certificates });
    return Object.fromEntries(volume?.files.map(({ path, content }) => [path, content.toString()]) ?? []);
  };

  it('is in the files that it names', () => {
    const issued = { key: 'key\n', chain: 'chain\n' };
    expect(planned(paths, issued)).toEqual({
      ...{ 'bundle.pem': 'key\nchain\n', 'key.pem': 'key\n', 'chain.pem': 'chain\n' },
    });
    expect(planned({ keyPath: 'k' }, issued)).toEqual({ k: 'key\n' });
  });

  it('is waited for', () => {
    const problem = 'credential bundle is not issued yet';
    expect(() => planned(paths, { problem })).toThrow(`MountVolume.SetUp failed for volume "v" : ${problem}`);
    expect(() => planned(paths)).toThrow('no credentials yet');
  });
});
