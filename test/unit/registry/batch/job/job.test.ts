import { describe, expect, it } from 'vitest';
import { scheduleFault } from '../../../../../src/objects/formats/cron-schedule.ts';
import { create, definitionOf, memberOf, update } from '../../decide.ts';

const jobs = definitionOf('Job');
const cronJobs = definitionOf('CronJob');
const template = { spec: { containers: [{ name: 'c', image: 'x' }], restartPolicy: 'Never' } };

describe('a Job', () => {
  it('selects its Pods by its uid', () => {
    const { object, errors } = create(jobs, { spec: { template } });
    const labels = {
      'batch.kubernetes.io/controller-uid': 'uid',
      'batch.kubernetes.io/job-name': 'a',
      'controller-uid': 'uid',
      'job-name': 'a',
    };
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      spec: {
        parallelism: 1,
        completions: 1,
        backoffLimit: 6,
        completionMode: 'NonIndexed',
        suspend: false,
        manualSelector: false,
        podReplacementPolicy: 'TerminatingOrFailed',
        selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': 'uid' } },
        template: { metadata: { labels } },
      },
    });
  });

  it('ends: its Pods are not restarted for ever', () => {
    const always = { spec: { ...template.spec, restartPolicy: 'Always' } };
    expect(create(jobs, { spec: { template: always } }).errors).toEqual([
      'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ]);
  });

  it('keeps the number of its completions', () => {
    const { stored } = create(jobs, { spec: { template } });
    const { errors } = update(jobs, stored, { spec: { ...memberOf(stored, 'spec'), completions: 2 } });
    expect(errors).toEqual(['spec.completions: Invalid value: 2: field is immutable']);
  });

  it('with an index changes its completions together with its parallelism', () => {
    const indexed = { template, completionMode: 'Indexed', completions: 2, parallelism: 2 };
    const { stored } = create(jobs, { spec: indexed });
    const to = (change: object) =>
      update(jobs, stored, { spec: { ...memberOf(stored, 'spec'), ...change } }).errors;
    expect(to({ completions: 3, parallelism: 3 })).toEqual([]);
    expect(to({ completions: 3 })).toEqual([
      'spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism',
    ]);
  });

  it('with an index has room in its name for the host names of its Pods', () => {
    const name = 'n'.repeat(62);
    const spec = { template, completionMode: 'Indexed', completions: 11 };
    expect(create(jobs, { metadata: { name }, spec }).errors).toEqual([
      `metadata.name: Invalid value: "${name}": will not able to create pod with invalid DNS label: ${name}-10`,
    ]);
  });

  describe('that is suspended', () => {
    const { stored } = create(jobs, { spec: { template, suspend: true } });
    const own = memberOf(stored, 'spec');
    const pod = memberOf(memberOf(own, 'template'), 'spec');
    const to = (change: object, status: object = {}, spec = own) =>
      update(
        jobs,
        { ...stored, ...{ spec, status } },
        { spec: { ...spec, template: { ...memberOf(own, 'template'), spec: { ...pod, ...change } } } },
      ).errors.map((error) => error.slice(0, error.indexOf(':')));
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } };
    const [container] = Array.isArray(pod['containers']) ? (pod['containers'] as object[]) : [];
    const containers = [{ ...container, resources: { requests: { cpu: '1' } } }];

    it.each<[string, object, string[]]>([
      ['where its Pods run', { nodeSelector: { a: 'b' }, tolerations: [{ operator: 'Exists' }] }, []],
      ['the resources of its containers', { containers }, []],
      ['its image', { containers: [{ ...container, image: 'y' }] }, ['spec.template.spec']],
      ['the affinity to other Pods', { affinity: { podAffinity: {} } }, ['spec.template.spec']],
    ])('changes %s', (_what, change, errors) => {
      expect(to(change)).toEqual(errors);
    });

    it('changes its affinity to nodes', () => {
      expect(to({ affinity: { nodeAffinity } }).filter((path) => path === 'spec.template.spec')).toEqual([]);
    });

    it('does not while it has Pods, or when it began and does not say that it is suspended', () => {
      expect(to({ containers }, { active: 1 })).toEqual(['spec.template']);
      const startTime = '2026-01-01T00:00:00Z';
      expect(to({ containers }, { startTime })).toEqual(['spec.template']);
      const conditions = [{ type: 'Suspended', status: 'True' }];
      expect(to({ containers }, { startTime, conditions })).toEqual([]);
      expect(to({ containers }, {}, { ...own, suspend: false })).toEqual(['spec.template']);
    });
  });
});

describe('a CronJob', () => {
  const jobTemplate = { spec: { template } };

  it('has a schedule and keeps three Jobs that succeeded and one that failed', () => {
    const { object, errors } = create(cronJobs, { spec: { schedule: '@daily', jobTemplate } });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      spec: {
        concurrencyPolicy: 'Allow',
        suspend: false,
        successfulJobsHistoryLimit: 3,
        failedJobsHistoryLimit: 1,
      },
    });
  });

  it('leaves room in its name for the names of its Jobs', () => {
    const name = 'n'.repeat(53);
    const { errors } = create(cronJobs, { metadata: { name }, spec: { schedule: '@daily', jobTemplate } });
    expect(errors).toEqual([`metadata.name: Invalid value: "${name}": must be no more than 52 characters`]);
  });

  it('selects nothing itself', () => {
    const selecting = { spec: { ...jobTemplate.spec, selector: { matchLabels: { a: 'b' } } } };
    const { errors } = create(cronJobs, { spec: { schedule: '@daily', jobTemplate: selecting } });
    expect(errors).toEqual([
      'spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` will be auto-generated',
    ]);
  });
});

describe('a schedule', () => {
  it.each([
    '* * * * *',
    '*/5 0-6,12 1 jan-mar SUN',
    '@hourly',
    '@every 1h30m',
    'TZ=UTC 0 0 * * ?',
    '5/10 * * * *',
  ])('%j can be read', (schedule) => {
    expect(scheduleFault(schedule)).toBe('');
  });

  it.each([
    ['* * * *', 'expected exactly 5 fields, found 4: [* * * *]'],
    ['60 * * * *', 'end of range (60) above maximum (59): 60'],
    ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
    ['9-5 * * * *', 'beginning of range (9) beyond end of range (5): 9-5'],
    ['*/0 * * * *', 'step of range should be a positive number: */0'],
    ['x * * * *', 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'],
    ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
    ['@sometimes', 'unrecognized descriptor: @sometimes'],
  ])('%j cannot', (schedule, fault) => {
    expect(scheduleFault(schedule)).toBe(fault);
  });
});
