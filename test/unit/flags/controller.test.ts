import { describe, expect, it } from 'vitest';
import { selectRemote } from '../../../src/commands/choices.ts';
import { controllerConfig as configOf, type ControllerConfig } from '../../../src/flags/controller.ts';
import { givenFlags } from '../../support/command-line.ts';

const defaults = givenFlags('controller', []);

function controllerConfig(options: Readonly<Record<string, unknown>>): ControllerConfig {
  return configOf({ ...defaults, ...options }, selectRemote);
}

describe('controllerConfig', () => {
  it("has kube-controller-manager's defaults", () => {
    expect(controllerConfig({})).toEqual({
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
        leaseDurationMs: 15_000,
        renewDeadlineMs: 10_000,
        retryPeriodMs: 2000,
        namespace: 'kube-system',
        name: 'servicenet-controller',
      },
      logLevel: 'info',
      logFormat: 'json',
    });
  });

  it('takes a list in parts, the first of which replaces the default', () => {
    const given = (...args: string[]): readonly string[] =>
      controllerConfig(givenFlags('controller', args)).controllers;
    expect(given('--controllers=*', '--controllers=-load-balancer-controller')).toEqual([
      'service-allocation-controller',
    ]);
    expect(given('--controllers', 'endpoints-controller')).toEqual(['endpoints-controller']);
  });

  it.each([
    ['0', undefined],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['[::1]:9090', { host: '::1', port: 9090 }],
  ])('listens at %s', (metricsBindAddress, expected) => {
    expect(controllerConfig({ metricsBindAddress }).metrics).toEqual(expected);
  });

  it('reaches a server by flags or by kubeconfig', () => {
    const direct = { server: 'https://10.0.0.1:6443', tokenFile: '/t', certificateAuthority: '/ca' };
    expect(controllerConfig(direct).cluster).toEqual({
      kind: 'endpoint',
      url: 'https://10.0.0.1:6443',
      tokenFile: '/t',
      certificateAuthority: '/ca',
    });
    expect(controllerConfig({ kubeconfig: '/k', context: 'c' }).cluster).toEqual({
      kind: 'kubeconfig',
      path: '/k',
      context: 'c',
    });
  });

  it('has no election where that is switched off, and takes lists and selectors apart', () => {
    const config = controllerConfig({
      leaderElect: false,
      controllers: '*, -load-balancer',
      serviceSelector: 'app in (a,b)',
    });
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
    expect(() => controllerConfig(flags)).toThrow(flag);
  });
});
