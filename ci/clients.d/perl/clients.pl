# Perl's Redis, one connection at a time: a client of ci/clients. ../README.md describes the arguments and the output.

use strict;
use warnings;
use Redis;
use Time::HiRes qw(time sleep);

my ($client, $servers, $source, $ops, $path, $stop) = @ARGV;
my @servers = split /,/, $servers;
my @ops = split /,/, $ops;
my (%redis, %at);
open(my $out, '>', $path) or die "cannot write $path: $!";
$out->autoflush(1);
print $out "version $Redis::VERSION\n";

sub connected {
    my ($server) = @_;
    my %options = (server => $server, reconnect => 0);
    %options = (%options, ssl => 1, SSL_verify_mode => 1) if $ENV{CLIENTS_CA};
    my $redis = Redis->new(%options);
    $redis->auth($ENV{CLIENTS_NAME}, $ENV{CLIENTS_TOKEN}) if $ENV{CLIENTS_TOKEN};
    return $redis;
}

sub called {
    my ($redis, $op, $key) = @_;
    return $redis->mint($key, 100) if $op eq 'batch';
    return ($redis->incr($key)) if $op ne 'multi';
    $redis->multi;
    $redis->incr($key) for 1 .. 2;
    return $redis->exec;
}

until (-e $stop) {
    for my $op (@ops) {
        my $server = $servers[ ($at{$op} // 0) % @servers ];
        my $key = $op eq 'counter' ? 'counters:{shared}' : $source;
        my @ids = eval {
            $redis{$server} //= connected($server);
            called($redis{$server}, $op, $key);
        };
        my $error = $@ || (grep({ !defined || !/^[0-9]+$/ } @ids) ? "reply @ids is no list of integers" : '');
        if ($error) {
            $error =~ tr/\n/ /;
            printf STDERR "%d %s %s\n", time * 1000, $op, $error;
            delete $redis{$server};
            $at{$op}++;
            sleep 0.05;
            next;
        }
        printf $out "%d %s %s %s\n", time * 1000, $op, $key, join(' ', @ids);
    }
    sleep 0.1;
}
