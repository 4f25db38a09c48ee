import { describe, expect, it } from 'vitest';
import { selectRemote } from '../../../src/commands/command-line/select-controllers.ts';
import { controllerConfig as configOf, type ControllerConfig } from '../../../src/flags/controller.ts';

/** What commander gives without any flag. */
const defaults = {
  controllers: '*',
  serviceSelector: '',
  allocation: 'server',
  serviceNodePortRange: '30000-32767',
  namespaceIsolation: false,
  globalNamespaces: 'default',
  lbClass: 'servicenet.dev/load-balancer',
  defaultClass: true,
  compat: true,
  metricsBindAddress: ':8080',
  leaderElect: true,
  leaderElectLeaseDuration: '15s',
  leaderElectRenewDeadline: '10s',
  leaderElectRetryPeriod: '2s',
  leaderElectResourceNamespace: 'kube-system',
  leaderElectResourceName: 'servicenet-controller',
  logLevel: 'info',
};

function controllerConfig(options: Readonly<Record<string, unknown>>, isTerminal: boolean): ControllerConfig {
  return configOf(options, isTerminal, selectRemote);
}

describe('controllerConfig', () => {
  it("has kube-controller-manager's defaults", () => {
    expect(controllerConfig(defaults, false)).toEqual({
      cluster: { kind: 'kubeconfig' },
      controllers: ['service-allocation-controller', 'load-balancer-controller'],
      serviceSelector: [],
      allocation: 'server',
      serviceCidrs: undefined,
      nodePorts: { first: 30_000, last: 32_767 },
      loadBalancer: { loadBalancerClass: 'servicenet.dev/load-balancer', isDefaultClass: true, compat: true },
      attachments: { namespaceIsolation: false, nonIsolatedNamespaces: ['default'] },
      metrics: { host: '', port: 8080 },
      leaderElection: {
        leaseDuration: 15_000,
        renewDeadline: 10_000,
        retryPeriod: 2000,
        namespace: 'kube-system',
        name: 'servicenet-controller',
      },
      logLevel: 'info',
      logFormat: 'json',
    });
  });

  it.each([
    ['0', undefined],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['[::1]:9090', { host: '::1', port: 9090 }],
  ])('listens at %s', (metricsBindAddress, expected) => {
    expect(controllerConfig({ ...defaults, metricsBindAddress }, true).metrics).toEqual(expected);
  });

  it('reaches a server by flags or by kubeconfig', () => {
    const direct = { server: 'https://10.0.0.1:6443', tokenFile: '/t', certificateAuthority: '/ca' };
    expect(controllerConfig({ ...defaults, ...direct }, true).cluster).toEqual({
      kind: 'endpoint',
      url: 'https://10.0.0.1:6443',
      tokenFile: '/t',
      certificateAuthority: '/ca',
    });
    expect(controllerConfig({ ...defaults, kubeconfig: '/k', context: 'c' }, true).cluster).toEqual({
      kind: 'kubeconfig',
      path: '/k',
      context: 'c',
    });
  });

  it('has no election where that is switched off, and takes lists and selectors apart', () => {
    const config = controllerConfig(
      { ...defaults, leaderElect: false, controllers: '*, -load-balancer', serviceSelector: 'app in (a,b)' },
      true,
    );
    expect(config.leaderElection).toBeUndefined();
    expect(config.controllers).toEqual(['service-allocation-controller']);
    expect(config.serviceSelector).toEqual([{ key: 'app', operator: 'in', values: ['a', 'b'] }]);
  });

  it.each([
    [{ server: 'ftp://x' }, '--server'],
    [{ server: 'https://x', kubeconfig: '/k' }, '--server'],
    [{ tokenFile: '/t' }, '--token-file'],
    [{ metricsBindAddress: '8080' }, '--metrics-bind-address'],
    [{ metricsBindAddress: ':99999' }, '--metrics-bind-address'],
    [{ globalNamespaces: 'default,No Name' }, '--global-namespaces: No Name: a lowercase RFC 1123 label'],
    [{ leaderElectLeaseDuration: '15' }, '--leader-elect-lease-duration'],
    [
      { leaderElectLeaseDuration: '9s' },
      '--leader-elect-lease-duration: must be at least 1s and above --leader-elect-renew-deadline (10s)',
    ],
    [
      { leaderElectRetryPeriod: '9s' },
      '--leader-elect-renew-deadline: must be above 1.2 times --leader-elect-retry-period (9s) and below --leader-elect-lease-duration (15s)',
    ],
    [{ lbClass: 'bad class' }, '--lb-class: name part must consist of'],
    [{ lbClass: 'a/b/c' }, '--lb-class: a valid label key'],
    [{ serviceSelector: 'a in' }, '--service-selector'],
    [{ serviceNodePortRange: '1' }, '--service-node-port-range'],
    [{ serviceClusterIpRange: '10.0.0.0/33' }, '--service-cluster-ip-range'],
    [{ allocation: 'nobody' }, '--allocation'],
    [{ controllers: '' }, '--controllers'],
    [{ controllers: 'scheduler' }, '--controllers: "scheduler" is not in the list of known controllers: '],
  ])('refuses %o by the name of the flag', (flags, flag) => {
    expect(() => controllerConfig({ ...defaults, ...flags }, true)).toThrow(flag);
  });
});
