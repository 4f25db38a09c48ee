import { describe, expect, test } from 'vitest';
import { testServerConfig } from '../../../src/testing/options.ts';

describe('the options of startApiServer', () => {
  test('have defaults', () => {
    expect(testServerConfig({})).toMatchObject({
      bindAddress: '127.0.0.1',
      extraHosts: [],
      port: 0,
      nodePorts: { first: 30_000, last: 32_767 },
      authorizationMode: 'AlwaysAllow',
      platform: 'kubernetes',
      allocation: 'server',
      nodes: 0,
      clusterCidrs: ['10.244.0.0/16'],
      controllers: [],
      addressPool: undefined,
      logLevel: 'silent',
    });
    expect(testServerConfig({}).serviceCidrs.map(({ range }) => range.text)).toEqual(['10.96.0.0/16']);
  });

  test('choose controllers: all with nodes, the load balancer with a pool, and those that are named', () => {
    expect(testServerConfig({ nodes: 1 }).controllers).toEqual(
      expect.arrayContaining(['default-scheduler', 'endpoints-controller', 'load-balancer-controller']),
    );
    const addressPools = ['192.0.2.0/28', '2001:db8::/64'];
    expect(testServerConfig({ addressPools })).toMatchObject({
      controllers: ['load-balancer-controller'],
      // No Service has an IPv6 address here.
      addressPool: ['192.0.2.0/28'],
    });
    expect(testServerConfig({ nodes: 1, controllers: ['kubelet', 'endpoints'] }).controllers).toEqual([
      'kubelet',
      'endpoints-controller',
    ]);
  });

  test.each<[unknown, string]>([
    [{ node: 1 }, 'startApiServer: unknown option node; the options are serviceClusterIpRange, '],
    [null, 'startApiServer: takes an object; the options are serviceClusterIpRange, '],
    [{ authorizationMode: 'rbac' }, 'startApiServer: authorizationMode: must be one of AlwaysAllow, RBAC'],
    [{ allocation: 'nobody' }, 'startApiServer: allocation: must be one of server, controller'],
    [{ nodes: -1 }, 'startApiServer: nodes: must be a whole number from 0 to 1000'],
    [{ nodes: '3' }, 'startApiServer: nodes: must be a whole number from 0 to 1000'],
    [{ nodes: null }, 'startApiServer: nodes: must be a whole number from 0 to 1000'],
    [{ port: 65_536 }, 'startApiServer: port: must be a whole number from 0 to 65535'],
    [{ controllers: '*' }, 'startApiServer: controllers: must be a list of texts'],
    [
      { controllers: ['nope'] },
      'startApiServer: controllers: "nope" is not in the list of known controllers: endpoints-controller, ',
    ],
    [{ addressPools: '192.0.2.0/24' }, 'startApiServer: addressPools: must be a list of texts'],
    [
      { addressPools: ['192.0.2.0/33'] },
      'startApiServer: addressPools: "192.0.2.0/33" is neither a CIDR nor',
    ],
    [{ serviceClusterIpRange: 10 }, 'startApiServer: serviceClusterIpRange: needs a value'],
    [
      { serviceClusterIpRange: '10.0.0.0/30' },
      'startApiServer: serviceClusterIpRange: 10.0.0.0/30 is too small',
    ],
    [{ serviceNodePortRange: '1' }, 'startApiServer: serviceNodePortRange: "1" is not a port range such as'],
    [{ clusterCidr: '10.0.0.0/25' }, 'startApiServer: clusterCidr: "10.0.0.0/25" is too small'],
    [{ token: 'short' }, 'startApiServer: token: must have at least 8 characters'],
    [{ dataDirectory: '' }, 'startApiServer: dataDirectory: needs a value'],
    [{ refuse: 429 }, 'startApiServer: refuse: must be a function'],
    [{ logLevel: 'loud' }, 'startApiServer: logLevel: must be one of trace, '],
  ])('%j is refused by name, with what is allowed', (options, message) => {
    expect(() => testServerConfig(options)).toThrow(message);
  });
});
