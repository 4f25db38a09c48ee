import { describe, expect, test } from 'vitest';
import { valueOf } from './evaluating.ts';

function table(rows: readonly (readonly [string, unknown])[]): void {
  test.each(rows)('%.200s', (expression, expected) => {
    expect(valueOf(expression)).toEqual(expected);
  });
}

function failures(rows: readonly (readonly [string, string])[]): void {
  test.each(rows)('%s fails', (expression, message) => {
    expect(() => valueOf(expression)).toThrow(message);
  });
}

describe('conversions', () => {
  table([
    [`int('-42')`, -42],
    [`int('-000000000000000000000000000042')`, -42],
    ['int(1.9)', 1],
    ['int(5u)', 5],
    ['uint(7)', 7],
    [`double('2.5')`, 2.5],
    ['string(1.0)', '1'],
    ['string(1.5e30)', '1.5e+30'],
    ['string(100000.0)', '100000'],
    ['string(-0.0)', '-0'],
    ['string(1234567.5)', '1.2345675e+06'],
    ['string(true)', 'true'],
    [`string(b'abc')`, 'abc'],
    [`string(duration('1m30.5s'))`, '90.5s'],
    [`string(timestamp('2024-01-02T03:04:05.600Z'))`, '2024-01-02T03:04:05.6Z'],
    // A time is shown in its own zone, and read in UTC.
    [`string(timestamp('2024-01-02T03:04:05-01:30') + duration('1h'))`, '2024-01-02T04:04:05-01:30'],
    [`timestamp('2024-01-02T03:04:05+01:00').getHours()`, 2],
    [`type(ip('1.2.3.4')) == net.IP && type(optional.none()) == optional_type`, true],
    ['dyn([1.5, 2.0]).sum()', 3.5],
    [`optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()`, false],
    [`optional.of(['a'])[0].value()`, 'a'],
    [`optional.of({'a': 1})['b'].hasValue()`, false],
    // The items of a list may differ where they are formatted.
    [`'%d %s'.format([1, 'a'])`, '1 a'],
    [`bool('true')`, true],
    [`bytes('é').size()`, 2],
    ['type(1) == int && type(1) != string', true],
    ['int(timestamp(60))', 60],
  ]);
  failures([
    ['int(1e300)', 'integer overflow'],
    [`int('${'9'.repeat(100)}')`, 'integer overflow'],
    [`bool('yes')`, 'strconv.ParseBool: parsing "yes": invalid syntax'],
    [String.raw`string(b'\xff')`, 'invalid UTF-8 in bytes'],
    [`timestamp('9999-12-31T23:59:59Z') + duration('1s')`, 'timestamp overflow'],
    ['timestamp(253402300800)', 'invalid timestamp argument'],
  ]);
});

describe('texts', () => {
  table([
    ['self.name.size()', 6],
    ['self.name.charAt(5)', '😀'],
    ['self.name.charAt(6)', ''],
    [`self.name.indexOf('😀')`, 5],
    [`'hello mellow'.indexOf('ello', 2)`, 7],
    [`'hello mellow'.lastIndexOf('ello')`, 7],
    [`'hello mellow'.lastIndexOf('ello', 6)`, 1],
    [`'hello'.indexOf('x')`, -1],
    [`'TaCoCÆt'.lowerAscii()`, 'tacocÆt'],
    [`'tacocæt'.upperAscii()`, 'TACOCæT'],
    [`'hello'.replace('l', 'L')`, 'heLLo'],
    [`'hello'.replace('l', 'L', 1)`, 'heLlo'],
    [`'ab'.replace('', '-')`, '-a-b-'],
    [`'a,b,c'.split(',')`, ['a', 'b', 'c']],
    [`'a,b,c'.split(',', 2)`, ['a', 'b,c']],
    [`'a,b'.split(',', 0)`, []],
    [`'é😀'.split('')`, ['é', '😀']],
    [`['a', 'b'].join('-')`, 'a-b'],
    [`['a', 'b'].join()`, 'ab'],
    ['self.name.substring(5)', '😀'],
    ['self.name.substring(1, 3)', 'él'],
    [`'  a b '.trim()`, 'a b'],
    ['"\u00a0\u0085\u2028x\u200b\ufeff\t".trim()', 'x\u200b\ufeff'],
    [`'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')`, true],
    [`strings.quote('a"b')`, String.raw`"a\"b"`],
  ]);
  failures([
    [`'abc'.charAt(4)`, 'index out of range: 4'],
    [`'abc'.substring(2, 1)`, 'invalid substring range. start: 2, end: 1'],
    [`'abc'.substring(-1)`, 'index out of range: -1'],
  ]);
});

describe('format', () => {
  table([
    [`'%s is %d of %d%%'.format([dyn('a'), 5, 10])`, 'a is 5 of 10%'],
    [`'%.2f %e'.format([1.005, 1500.0])`, '1.00 1.500000e+03'],
    [`'%x %X %o %b'.format([dyn(255), 'hi', 8, 5])`, 'ff 6869 10 101'],
    [`'%s %s'.format([dyn([1, 2]), {'b': 1, 'a': 2}])`, '[1, 2] {a: 2, b: 1}'],
    [`'%s'.format([duration('90s')])`, '90s'],
  ]);
  failures([
    [`'%s %s'.format(['a'])`, 'index 1 out of range'],
    [
      `'%d'.format(['a'])`,
      'error during formatting: %d clause can only be used on integers, was given string',
    ],
    [`'%q'.format(['a'])`, 'unrecognized formatting clause "q"'],
  ]);
});

describe('patterns', () => {
  table([
    [`'abc123'.matches('[a-z]+[0-9]+')`, true],
    [`matches('abc', '^b')`, false],
    [`'ABC'.matches('(?i)abc')`, true],
    [`'abc 123'.find('[0-9]+')`, '123'],
    [`'abc'.find('[0-9]+')`, ''],
    [`'1 2 3'.findAll('[0-9]')`, ['1', '2', '3']],
    [`'1 2 3'.findAll('[0-9]', 2)`, ['1', '2']],
  ]);
  failures([[`'a'.matches(self.port + '(')`, 'missing closing )']]);
});

describe('times', () => {
  table([
    ['self.since.getFullYear()', 2024],
    ['self.since.getMonth()', 1],
    ['self.since.getDate()', 29],
    ['self.since.getDayOfMonth()', 28],
    ['self.since.getDayOfWeek()', 4],
    [`timestamp('0001-01-01T00:00:00Z').getDayOfWeek()`, 1],
    ['self.since.getDayOfYear()', 59],
    [`self.since.getHours('Europe/Berlin')`, 13],
    [`self.since.getHours('-02:30')`, 10],
    ['self.since.getMilliseconds()', 500],
    [`self.since + duration('1h') > self.since`, true],
    [`timestamp('2024-01-01T00:00:01Z') - timestamp('2024-01-01T00:00:00Z')`, '1s'],
    [`duration('1h30m').getMinutes()`, 90],
    [`duration('-1.5s') < duration('0')`, true],
    [`duration('1.5s').getMilliseconds()`, 1500],
  ]);
  failures([
    [`timestamp(self.port)`, 'invalid timestamp: "http"'],
    [`self.since.getHours('Nowhere/Else')`, 'unknown time zone Nowhere/Else'],
    [`duration(self.port)`, 'time: invalid duration "http"'],
  ]);
});

describe('lists and sets', () => {
  table([
    ['[1, 2, 2].isSorted() && ![2, 1].isSorted()', true],
    ['[1, 2].sum() == 3 && [1.5].sum() == 1.5', true],
    [`[duration('1s'), duration('2s')].sum()`, '3s'],
    ['self.numbers.min() + self.numbers.max()', 4],
    [`['b', 'a'].min()`, 'a'],
    ['[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2', true],
    ['[1].indexOf(3)', -1],
    ['sets.contains([1, 2], [2])', true],
    ['sets.equivalent([1, 2, 1], [2, 1])', true],
    ['sets.intersects([1], [2])', false],
  ]);
  failures([['[1].filter(n, false).min()', 'min called on empty list']]);
});

describe('URLs', () => {
  table([
    [`url('https://user@example.com:80/a b?k=1&k=2').getHost()`, 'example.com:80'],
    [`url('https://[::1]:80/').getHostname()`, '::1'],
    [`url('https://example.com:80/').getPort()`, '80'],
    [`url('https://example.com/a b').getEscapedPath()`, '/a%20b'],
    [`url('https://example.com/?k=1&k=2').getQuery()`, { k: ['1', '2'] }],
    [`url('/only/a/path').getScheme()`, ''],
    [`isURL('https://example.com') && !isURL('../relative') && !isURL('')`, true],
    [`isURL('http://a:b/')`, false],
  ]);
  failures([[`url('nothing')`, 'URL parse error during conversion from string']]);
});

describe('addresses', () => {
  table([
    [
      `isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0') && !isIP('010.0.0.1') && !isIP('::ffff:1.2.3.4')`,
      true,
    ],
    [`ip('10.0.0.1').family() + ip('::1').family()`, 10],
    [`ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified()`, true],
    [`ip('169.254.1.1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast()`, true],
    [`ip('8.8.8.8').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()`, true],
    [`ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1')`, true],
    [`ip('::1') == ip('0:0:0:0:0:0:0:1')`, true],
    [`string(ip('2001:DB8::1'))`, '2001:db8::1'],
    [`isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0')`, true],
    [`cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))`, true],
    [`cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')`, true],
    [`cidr('10.0.0.0/16').containsCIDR(cidr('10.0.0.0/8'))`, false],
    [`cidr('10.0.0.0/8').containsCIDR('10.0.0.0/8')`, true],
    [`cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').prefixLength() == 8`, true],
    [`cidr('10.1.2.3/8').ip() == ip('10.1.2.3')`, true],
  ]);
  failures([[`ip('x')`, 'IP Address "x" parse error during conversion from string']]);
});

describe('quantities', () => {
  table([
    [`isQuantity('1.5Gi') && !isQuantity('1x')`, true],
    [`quantity('1Gi').isGreaterThan(quantity('1G'))`, true],
    [`quantity('500m').compareTo(quantity('0.5'))`, 0],
    [`quantity('500m') == quantity('0.5')`, true],
    [`quantity('2k').asInteger() + quantity('1').add(2).asInteger()`, 2003],
    [`quantity('1').sub(quantity('500m')).isInteger()`, false],
    [`sign(quantity('-1'))`, -1],
    [`quantity('500m').asApproximateFloat()`, 0.5],
  ]);
  failures([[`quantity('0.5').asInteger()`, 'cannot convert value to integer']]);
});

describe('versions', () => {
  table([
    [`isSemver('1.2.3-rc.1+x') && !isSemver('1.2') && !isSemver('v1.2.3') && !isSemver('01.2.3')`, true],
    [`isSemver('v1.2', true)`, true],
    [`semver('1.2.3').isLessThan(semver('1.10.0'))`, true],
    [`semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))`, true],
    [`semver('1.0.0-rc.2').compareTo(semver('1.0.0-rc.10'))`, -1],
    [`semver('1.0.0-1').isLessThan(semver('1.0.0-a'))`, true],
    [`semver('1.2.3').major() + semver('1.2.3').minor() + semver('1.2.3').patch()`, 6],
  ]);
});

describe('lists of any length', () => {
  const long = `'${'a'.repeat(1000)}'.replace('a', '${'a'.repeat(200)}').split('')`;
  table([
    [`${long}.max()`, 'a'],
    [`${long}.isSorted()`, true],
    [`${long}.lastIndexOf('a')`, 199_999],
  ]);
});

describe('formats', () => {
  table([
    [`format.dns1123Label().validate('ok').hasValue()`, false],
    [`format.dns1123Label().validate('No').value().size()`, 1],
    [`format.named('uuid').value().validate('x').value()`, ['does not match the UUID format']],
    [`format.named('unknown')`, 'none'],
    [`format.labelValue().validate('a b').hasValue() && format.uri().validate('x').hasValue()`, true],
  ]);
});
